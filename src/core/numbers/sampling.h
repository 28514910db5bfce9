// The steps of drawing a token from logits. All sums are integer sums, so every backend draws the
// same token whatever the order in which it visits the logits.
#pragma once

#include <cstdint>

#include "core/numbers/fp8.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// The weight of the largest logit is 2^kSamplingBits. So the weights of up to kMaxSampledTokens
// tokens sum to less than 2^63.
inline constexpr int kSamplingBits = 44;
inline constexpr int64_t kMaxSampledTokens = int64_t{1} << 19;

// Maps a logit to an integer that sorts like the logit, with -0 equal to 0. REQUIRES that x is not
// NaN.
FP8KV_HD uint32_t sampling_key(float x) {
  const uint32_t bits = x == 0.0f ? 0u : float_bits(x);
  return (bits >> 31) != 0u ? ~bits : bits | 0x80000000u;
}

// The inverse of sampling_key.
FP8KV_HD float sampling_logit(uint32_t key) {
  return float_from_bits((key >> 31) != 0u ? key & 0x7FFFFFFFu : ~key);
}

// exp((logit - max) / temperature) in units of 2^-kSamplingBits, accurate to 2^-46 before it is
// rounded down. A logit infinitely below the maximum weighs 0. REQUIRES logit <= max and
// temperature > 0.
FP8KV_HD uint64_t sampling_weight(float logit, float max, float temperature) {
  if (logit == max) return uint64_t{1} << kSamplingBits;  // even if both are infinite
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2 = 0.6931471805599453;
  const double exponent = (static_cast<double>(logit) - static_cast<double>(max)) /
                          static_cast<double>(temperature) * kLog2E;
  if (!(exponent > -(kSamplingBits + 1.0))) return 0;
  const int whole = static_cast<int>(-exponent);
  // 2^exponent = 2^(-whole) * e^-r with r in [0, ln 2): the series' next term is below 2^-50.
  const double r = (-exponent - static_cast<double>(whole)) * kLn2;
  double sum = 1.0;
  for (int i = 15; i > 0; --i) sum = 1.0 - sum * r / static_cast<double>(i);
  return static_cast<uint64_t>(sum * static_cast<double>(uint64_t{1} << kSamplingBits)) >> whole;
}

// 64 random bits for a position in a sequence. They depend on seed and position alone.
FP8KV_HD uint64_t sampling_random(uint64_t seed, uint32_t position) {
  uint64_t z = seed;
  for (int i = 0; i < 2; ++i) {  // splitmix64's finaliser, over the seed and then the position
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    if (i == 0) z += 0x9E3779B97F4A7C15u * (uint64_t{position} + 1);
  }
  return z;
}

// floor(random / 2^64 * total): uniform below `total`.
FP8KV_HD uint64_t sampling_below(uint64_t random, uint64_t total) {
  const uint64_t a = random >> 32, b = random & 0xFFFFFFFFu;
  const uint64_t c = total >> 32, d = total & 0xFFFFFFFFu;
  const uint64_t middle = (b * d >> 32) + (a * d & 0xFFFFFFFFu) + (b * c & 0xFFFFFFFFu);
  return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}

// The total weight that top_p sampling must reach with the likeliest tokens, from 1 to `total`.
FP8KV_HD uint64_t sampling_share(float top_p, uint64_t total) {
  const double share = static_cast<double>(top_p) * static_cast<double>(total);
  const auto whole = static_cast<uint64_t>(share);
  const uint64_t up = whole + (static_cast<double>(whole) < share ? 1u : 0u);
  return up == 0 ? 1 : up > total ? total : up;
}

}  // namespace fp8kv
