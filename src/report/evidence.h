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
// Nor does a text in which amax grew by more than this when it doubled: after three more doublings
// the octave of room that "1.0 is safe" leaves would be used up (1.25^3 = 1.95).
inline constexpr double kMostGrowth = 0.25;

struct TextEvidence {
  std::optional<uint64_t> tokens;    // absent: the source does not say
  std::optional<AmaxGrowth> growth;  // of layers; absent: nothing is known of half of the text
  std::vector<AmaxGrowth> earlier;   // in the doublings before the last, the latest first
  bool enough = false;
  // What is missing, about; 0 where it is enough or cannot be said.
  uint64_t more_tokens = 0;
};

TextEvidence text_evidence(const Provenance& from);

// "10 tokens; amax of layer 2 K grew by 35 % when the text last doubled; about 990 more tokens are
// needed". REQUIRES that it is not enough.
std::string too_little_text(const TextEvidence& evidence);

// What was counted, on one line: "2,000 tokens in 4 windows of 3 documents; K after RoPE, computed
// in float16".
std::string evidence_words(const Provenance& from);

// "decoded from fp8, one scale; activations in bfloat16, which runtimes may quantise too", of
// ModelConfig::stored_as; "" where that is.
std::string decoded_words(const std::string& stored_as, const std::string& compute_dtype);

}  // namespace fp8kv
