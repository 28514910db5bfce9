// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <span>

#include "base/rng.h"

namespace fp8kv {

struct SamplingOptions {
  float temperature = 0.0f;  // 0: the largest logit, the lowest id among equals
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;
  uint64_t seed = 0;
};

// One per sequence, so that what a prompt yields does not depend on its neighbours.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, uint64_t sequence);

  // `logits` [vocab_size]. Throws when one is NaN.
  int32_t pick(std::span<const float> logits);

 private:
  SamplingOptions options_;
  Rng rng_;
};

}  // namespace fp8kv
