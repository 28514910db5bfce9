// Whether a text was long enough for a verdict on what was counted in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scales.h"
#include "policy/amax_growth.h"

namespace fp8kv {

// Fewer tokens allow no verdict. Below this, amax of some layer still grew by 25 to 105 % each time
// the text doubled, in every one of six pairs of model and text; above it, never: docs/accuracy.md.
inline constexpr uint64_t kLeastTokens = 1000;
// A scale must have room for so many more doublings of the text, if each brings as much growth as
// the last one.
inline constexpr double kDoublingsAhead = 3;

struct TextEvidence {
  std::optional<uint64_t> tokens;    // absent: the source does not say
  std::optional<AmaxGrowth> growth;  // of the fastest layer; absent: half of the text is not known
  std::vector<LayerGrowth> layers;   // in the last doubling; empty: half of the text is not known
  std::vector<AmaxGrowth> earlier;   // in the doublings before the last, the latest first
  bool enough = false;               // kLeastTokens or more
  uint64_t more_tokens = 0;          // missing to kLeastTokens; 0 where that is not known

  // Octaves of room that a value needs, which grew by `share` in the last doubling.
  static double room_for(double share);
};

TextEvidence text_evidence(const Provenance& from);

// "10 tokens; 990 more are needed". REQUIRES that it is not enough.
std::string too_little_text(const TextEvidence& evidence);

// Why scales cannot be judged: "too little text: 10 tokens; 990 more are needed", or that nothing
// is known of their text. "" if the text sufficed.
std::string missing_evidence(const Provenance& from);

// What was counted, on one line: "2,000 tokens in 4 windows of 3 documents; K after RoPE, computed
// in float16".
std::string evidence_words(const Provenance& from);

// "decoded from fp8, one scale; activations in bfloat16, which runtimes may quantise too", of
// ModelConfig::stored_as; "" where that is.
std::string decoded_words(const std::string& stored_as, const std::string& compute_dtype);

}  // namespace fp8kv
