// Natural log-probabilities of tokens, computed in double from a row of logits. They belong to the
// model's own distribution, before temperature, top_k and top_p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fp8kv {

struct LogitSum {
  double log_sum = 0;  // log(sum exp(logit))
  size_t best = 0;     // id of the largest logit, the lowest id among equals
};

// Throws if a logit is NaN or the largest is infinite: such logits are no distribution.
LogitSum sum_logits(std::span<const float> logits);

struct TokenLogProbability {
  int32_t id = 0;
  double log_probability = 0;  // -infinity for a logit of -infinity
};

struct TokenLogProbabilities {
  TokenLogProbability token;                   // the token asked for
  std::vector<TokenLogProbability> likeliest;  // the likeliest first, the lowest id among equals
};

// Returns `id` and the `count` likeliest tokens (at most the vocabulary), which may include `id`.
TokenLogProbabilities log_probabilities(std::span<const float> logits, int32_t id, int64_t count);

}  // namespace fp8kv
