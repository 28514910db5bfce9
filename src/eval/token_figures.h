// Figures from logits: of one row, of the difference between two rows, and of many rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/eval_report.h"

namespace fp8kv {

// The softmax of one row of logits, in double.
class RowDistribution {
 public:
  // logits [vocab_size] must outlive this object.
  void set(std::span<const float> logits);

  int32_t best() const { return best_; }  // the first of the largest
  double nll(int32_t id) const { return log_sum_ - double{logits_[static_cast<size_t>(id)]}; }
  // KL(this || other) over the whole vocabulary; other [vocab_size].
  double divergence(const RowDistribution& other) const;

 private:
  std::span<const float> logits_;
  std::vector<double> weights_;  // exp(logit - max), not normalised
  double sum_ = 0;               // of weights_
  double log_sum_ = 0;           // log(sum exp(logit))
  int32_t best_ = 0;
};

// The results of predictions, one entry each, in text order.
struct TokenLog {
  std::vector<double> nll;
  std::vector<double> kld;     // from the baseline
  std::vector<uint8_t> agree;  // 1: same likeliest token as the baseline

  void resize(size_t n);
};

// The figures of the first depths.size() predictions in `log`, against the baseline's. Prediction i
// has depths[i] tokens before it. `total` covers all of them. `buckets` are ranges of depth with
// predictions: 0 to 512, then each range ends four times as deep. REQUIRES at least one prediction.
struct FiguresByDepth {
  TokenFigures total;
  std::vector<PartSums> parts;  // of all predictions
  std::vector<TokenFigures> buckets;
};
FiguresByDepth figures_by_depth(const TokenLog& log, const TokenLog& baseline,
                                std::span<const int64_t> depths);

// The value below which `share` of the values lie, interpolated between ranks like NumPy's default.
double percentile(std::vector<double> values, double share);

}  // namespace fp8kv
