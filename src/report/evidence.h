// Whether a text was long enough for a verdict on its counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scales/scales.h"
#include "policy/amax_growth.h"

namespace fp8kv {

// The fewest tokens for a verdict. Below this, some layer's amax grew by 25 to 105 % with each
// doubling, in all six pairs of model and text. Above it, never: docs/accuracy.md.
inline constexpr uint64_t kLeastTokens = 1000;
// A scale must have room for so many more doublings of the text, each growing amax like the last.
inline constexpr double kDoublingsAhead = 3;

struct TextEvidence {
  std::optional<uint64_t> tokens;    // absent: the source does not say
  std::optional<AmaxGrowth> growth;  // of the fastest layer; absent: half of the text is unknown
  std::vector<LayerGrowth> layers;   // in the last doubling; empty: half of the text is unknown
  std::vector<AmaxGrowth> earlier;   // in earlier doublings, the latest first
  bool enough = false;               // at least kLeastTokens
  uint64_t more_tokens = 0;          // tokens missing to kLeastTokens; 0 if unknown

  // The octaves of room needed by a value that grew by `share` in the last doubling.
  static double room_for(double share);
};

TextEvidence text_evidence(const Provenance& from);

// "10 tokens; 990 more are needed". REQUIRES that the text is not enough.
std::string too_little_text(const TextEvidence& evidence);

// Why scales cannot be judged: "too little text: 10 tokens; 990 more are needed", or that nothing
// is known of their text. "" if the text suffices.
std::string missing_evidence(const Provenance& from);

// The counted text on one line: "2,000 tokens in 4 windows of 3 documents; K after RoPE, computed
// in float16".
std::string evidence_words(const Provenance& from);

// Describes ModelConfig::stored_as: "decoded from fp8, one scale; activations in bfloat16, which
// runtimes may quantise too". "" if `stored_as` is "".
std::string decoded_words(const std::string& stored_as, const std::string& compute_dtype);

}  // namespace fp8kv
