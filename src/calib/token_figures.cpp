#include "calib/token_figures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr int64_t kFirstBucket = 512;
constexpr int64_t kBucketGrowth = 4;

struct MeanAndError {
  double mean = 0;
  double error = 0;  // standard error of the mean
};

template <typename Value>
MeanAndError mean_of(const std::vector<size_t>& chosen, const Value& value) {
  const auto n = static_cast<double>(chosen.size());
  double sum = 0;
  for (const size_t i : chosen) sum += value(i);
  MeanAndError result{sum / n, 0};
  if (chosen.size() < 2) return result;
  double squares = 0;
  for (const size_t i : chosen) {
    const double off = value(i) - result.mean;
    squares += off * off;
  }
  result.error = std::sqrt(squares / (n - 1) / n);
  return result;
}

TokenFigures figures_of(const TokenLog& log, const TokenLog& baseline,
                        const std::vector<size_t>& chosen) {
  TokenFigures figures;
  figures.tokens = chosen.size();
  const MeanAndError nll = mean_of(chosen, [&](size_t i) { return log.nll[i]; });
  figures.nll = nll.mean;
  figures.nll_error = nll.error;
  figures.perplexity = std::exp(nll.mean);
  figures.perplexity_error = figures.perplexity * nll.error;
  const MeanAndError more = mean_of(chosen, [&](size_t i) { return log.nll[i] - baseline.nll[i]; });
  figures.ppl_delta = std::expm1(more.mean);
  figures.ppl_delta_error = (1 + figures.ppl_delta) * more.error;
  std::vector<double> klds;
  for (const size_t i : chosen) klds.push_back(log.kld[i]);
  figures.kld = mean_of(chosen, [&](size_t i) { return log.kld[i]; }).mean;
  figures.kld_max = *std::max_element(klds.begin(), klds.end());
  figures.kld_p999 = percentile(std::move(klds), 0.999);
  figures.top1 = mean_of(chosen, [&](size_t i) { return log.agree[i] != 0 ? 1.0 : 0.0; }).mean;
  return figures;
}

}  // namespace

void RowDistribution::set(std::span<const float> logits) {
  logits_ = logits;
  const auto best = std::max_element(logits.begin(), logits.end());
  best_ = static_cast<int32_t>(best - logits.begin());
  const double largest = *best;
  weights_.resize(logits.size());
  sum_ = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = std::exp(double{logits[i]} - largest);
    sum_ += weights_[i];
  }
  log_sum_ = largest + std::log(sum_);
}

double RowDistribution::divergence(const RowDistribution& other) const {
  double sum = 0;
  for (size_t i = 0; i < logits_.size(); ++i) {
    sum += weights_[i] * (double{logits_[i]} - double{other.logits_[i]});
  }
  // Never negative but for rounding. NaN stays.
  const double divergence = sum / sum_ - (log_sum_ - other.log_sum_);
  return divergence < 0 ? 0 : divergence;
}

void TokenLog::resize(size_t n) {
  nll.resize(n);
  kld.resize(n);
  agree.resize(n, 1);
}

FiguresByDepth figures_by_depth(const TokenLog& log, const TokenLog& baseline,
                                std::span<const int64_t> depths) {
  FP8KV_ASSERT(!depths.empty() && log.nll.size() >= depths.size());
  const int64_t deepest = *std::max_element(depths.begin(), depths.end());
  FiguresByDepth found;
  std::vector<size_t> chosen(depths.size());
  for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = i;
  found.total = figures_of(log, baseline, chosen);
  found.total.end_depth = deepest + 1;
  for (int64_t begin = 0, end = kFirstBucket; begin <= deepest; begin = end, end *= kBucketGrowth) {
    chosen.clear();
    for (size_t i = 0; i < depths.size(); ++i) {
      if (depths[i] >= begin && depths[i] < end) chosen.push_back(i);
    }
    if (chosen.empty()) continue;
    found.buckets.push_back(figures_of(log, baseline, chosen));
    found.buckets.back().first_depth = begin;
    found.buckets.back().end_depth = end;
  }
  return found;
}

double percentile(std::vector<double> values, double share) {
  FP8KV_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (rank - static_cast<double>(below));
}

}  // namespace fp8kv
