// Log-probabilities of tokens, from a row of logits. Natural, and computed in double: of the
// model's own distribution, before temperature, top_k and top_p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fp8kv {

struct LogitSum {
  double log_sum = 0;  // log(sum exp(logit))
  size_t best = 0;     // the largest logit, the lowest id among equals
};

// Throws for logits that are no distribution: one is NaN, or the largest is infinite.
LogitSum sum_logits(std::span<const float> logits);

struct TokenLogProbability {
  int32_t id = 0;
  double log_probability = 0;  // -infinity where the logit is
};

struct TokenLogProbabilities {
  TokenLogProbability token;                   // the one that was asked for
  std::vector<TokenLogProbability> likeliest;  // the likeliest first, the lowest id among equals
};

// The `count` likeliest beside `id`, which may be among them; all there are where they are fewer.
TokenLogProbabilities log_probabilities(std::span<const float> logits, int32_t id, int64_t count);

}  // namespace fp8kv
