// How far a cache moves the model's predictions while it writes the baseline's own text.
//
// Two greedy texts part by chance where two tokens are nearly as likely, and tell little behind
// that place. Up to it both caches predict from the same tokens, so their distributions compare.
//
// A distribution is kept as the baseline's kLikeliest tokens, and all others as one. Merging tokens
// can only lower a Kullback-Leibler divergence (data processing inequality), so the sums are lower
// bounds. They are exact for a vocabulary of at most kLikeliest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/compare/task_report.h"

namespace fp8kv {

// The baseline's prediction of one token.
struct KeptPrediction {
  static constexpr int64_t kLikeliest = 128;

  int32_t drawn = 0;
  std::vector<int32_t> ids;               // the likeliest tokens
  std::vector<double> log_probabilities;  // natural, of `ids`
};

KeptPrediction kept_prediction(int32_t drawn, std::span<const float> logits);

// KL(baseline || logits) in nats.
double divergence(const KeptPrediction& baseline, std::span<const float> logits);

// Adds the predictions of one text, in order, up to the first that draws another token.
class DivergingText {
 public:
  explicit DivergingText(std::span<const KeptPrediction> baseline) : baseline_(baseline) {}

  void add(int32_t drawn, std::span<const float> logits);
  const TextDivergence& sums() const { return sums_; }

 private:
  std::span<const KeptPrediction> baseline_;
  bool parted_ = false;
  TextDivergence sums_;
};

}  // namespace fp8kv
