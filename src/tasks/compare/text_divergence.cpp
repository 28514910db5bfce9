#include "tasks/compare/text_divergence.h"

#include <algorithm>
#include <cmath>

#include "generate/log_probabilities.h"

namespace fp8kv {

KeptPrediction kept_prediction(int32_t drawn, std::span<const float> logits) {
  KeptPrediction kept;
  kept.drawn = drawn;
  for (const TokenLogProbability& each :
       log_probabilities(logits, drawn, KeptPrediction::kLikeliest).likeliest) {
    kept.ids.push_back(each.id);
    kept.log_probabilities.push_back(each.log_probability);
  }
  return kept;
}

double divergence(const KeptPrediction& baseline, std::span<const float> logits) {
  const double log_sum = sum_logits(logits).log_sum;
  double sum = 0, baseline_rest = 1, own_rest = 1;
  for (size_t i = 0; i < baseline.ids.size(); ++i) {
    const double expected = baseline.log_probabilities[i];
    const double own = double{logits[static_cast<size_t>(baseline.ids[i])]} - log_sum;
    const double share = std::exp(expected);
    if (share > 0) sum += share * (expected - own);
    baseline_rest -= share;
    own_rest -= std::exp(own);
  }
  // Both rests are differences of numbers near 1, so below this size they are rounding.
  constexpr double kRounding = 1e-12;
  const bool has_rest = baseline.ids.size() < logits.size() && baseline_rest > kRounding;
  if (has_rest) sum += baseline_rest * std::log(baseline_rest / std::max(own_rest, kRounding));
  return std::max(sum, 0.0);
}

void DivergingText::add(int32_t drawn, std::span<const float> logits) {
  if (parted_ || sums_.tokens == baseline_.size()) return;
  const KeptPrediction& expected = baseline_[sums_.tokens];
  sums_.kld += divergence(expected, logits);
  ++sums_.tokens;
  parted_ = drawn != expected.drawn;
}

}  // namespace fp8kv
