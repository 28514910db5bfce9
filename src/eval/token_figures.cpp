#include "eval/token_figures.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "eval/standard_errors.h"

namespace fp8kv {
namespace {

constexpr int64_t kFirstBucket = 512;
constexpr int64_t kBucketGrowth = 4;

// A vocabulary has up to 2^18 ids, and every prediction needs all of them for every cache. So these
// loops are written for vectorising compilers: no calls, and as many parallel sums as registers
// hold. The order of additions is the same on every machine.
constexpr size_t kLanes = 8;

template <typename Term>
double sum_in_lanes(size_t n, const Term& term) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  double sum = 0;
  for (; i < n; ++i) sum += term(i);
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Returns NaN if the first value is NaN.
float largest_of(std::span<const float> values) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, values[0]);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = lanes[lane] < values[i + lane] ? values[i + lane] : lanes[lane];
    }
  }
  float largest = lanes[0];
  for (const float lane : lanes) largest = largest < lane ? lane : largest;
  for (; i < values.size(); ++i) largest = largest < values[i] ? values[i] : largest;
  return largest;
}

// exp of this is about the smallest normal number: nothing beside the 1 that every row contains.
constexpr double kLeastExponent = -708;

// exp(x) for x from kLeastExponent to 0, with a relative error of 4e-16. NaN stays NaN. With n the
// integer nearest to x / ln 2, the result is 2^n exp(x - n ln 2). The second factor is a Taylor
// series; its first omitted term is below (ln 2 / 2)^14 / 14! = 4e-18.
inline double exp_not_positive(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42fefa38p-1;   // few enough bits that n times it is exact
  constexpr double kLn2Low = 0x1.ef35793c7673p-45;  // ln 2 - kLn2High
  constexpr double kToWhole = 0x1.8p52;             // adding it rounds to an integer
  const double shifted = x * kLog2E + kToWhole;
  const double n = shifted - kToWhole;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double series = 1.0 / 6227020800.0;  // 1 / 13!
  series = series * r + 1.0 / 479001600.0;
  series = series * r + 1.0 / 39916800.0;
  series = series * r + 1.0 / 3628800.0;
  series = series * r + 1.0 / 362880.0;
  series = series * r + 1.0 / 40320.0;
  series = series * r + 1.0 / 5040.0;
  series = series * r + 1.0 / 720.0;
  series = series * r + 1.0 / 120.0;
  series = series * r + 1.0 / 24.0;
  series = series * r + 1.0 / 6.0;
  series = series * r + 0.5;
  series = series * r + 1.0;
  series = series * r + 1.0;
  // The lowest bits of `shifted` hold n, which is added to the exponent.
  return std::bit_cast<double>(std::bit_cast<uint64_t>(series) +
                               (std::bit_cast<uint64_t>(shifted) << 52));
}

// Sums of a value by parts, for means over chosen predictions.
class ByParts {
 public:
  ByParts(const std::vector<size_t>& chosen, std::span<const int64_t> depths) : chosen_(chosen) {
    std::vector<int64_t> of_chosen;
    for (const size_t i : chosen) of_chosen.push_back(depths[i]);
    parts_ = error_parts(of_chosen);
    counts_.resize(parts_.back() + 1);
    for (const size_t part : parts_) ++counts_[part];
  }

  template <typename Value>
  std::vector<double> sums(const Value& value) const {
    std::vector<double> all(counts_.size());
    for (size_t i = 0; i < chosen_.size(); ++i) all[parts_[i]] += value(chosen_[i]);
    return all;
  }
  template <typename Value>
  MeanAndError mean(const Value& value) const {
    return mean_over_parts(sums(value), counts_);
  }
  const std::vector<double>& counts() const { return counts_; }

 private:
  const std::vector<size_t>& chosen_;
  std::vector<size_t> parts_;   // [chosen]
  std::vector<double> counts_;  // [parts]
};

// The mean divergence of the chosen predictions whose depth is at most, or above, kFirstTokens.
MeanAndError kld_of(bool first, const TokenLog& log, std::span<const int64_t> depths,
                    std::vector<size_t> chosen) {
  std::erase_if(chosen, [&](size_t i) { return (depths[i] <= kFirstTokens) != first; });
  if (chosen.empty()) return {};
  return ByParts(chosen, depths).mean([&](size_t i) { return log.kld[i]; });
}

// The share of the sum in the largest hundredth of the values.
double share_of_largest(std::vector<double> values) {
  const size_t count = std::max<size_t>(1, values.size() / 100);
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(values.begin(), end - 1, values.end(), std::greater<>());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return sum > 0 ? std::accumulate(values.begin(), end, 0.0) / sum : 0;
}

TokenFigures figures_of(const TokenLog& log, const TokenLog& baseline,
                        std::span<const int64_t> depths, const ByParts& parts,
                        const std::vector<size_t>& chosen) {
  TokenFigures figures;
  figures.tokens = chosen.size();
  const MeanAndError nll = parts.mean([&](size_t i) { return log.nll[i]; });
  figures.nll = nll.mean;
  figures.nll_error = nll.error;
  figures.perplexity = std::exp(nll.mean);
  figures.perplexity_error = figures.perplexity * nll.error;
  const MeanAndError more = parts.mean([&](size_t i) { return log.nll[i] - baseline.nll[i]; });
  figures.ppl_delta = std::expm1(more.mean);
  figures.ppl_delta_error = (1 + figures.ppl_delta) * more.error;
  std::vector<double> klds;
  for (const size_t i : chosen) klds.push_back(log.kld[i]);
  const MeanAndError kld = parts.mean([&](size_t i) { return log.kld[i]; });
  figures.kld = kld.mean;
  figures.kld_error = kld.error;
  figures.kld_max = *std::max_element(klds.begin(), klds.end());
  figures.heavy_share = share_of_largest(klds);
  figures.kld_p999 = percentile(std::move(klds), 0.999);
  figures.first_tokens = static_cast<uint64_t>(std::count_if(
      chosen.begin(), chosen.end(), [&](size_t i) { return depths[i] <= kFirstTokens; }));
  const MeanAndError first = kld_of(true, log, depths, chosen);
  const MeanAndError later = kld_of(false, log, depths, chosen);
  figures.first_kld = first.mean;
  figures.first_kld_error = first.error;
  figures.later_kld = later.mean;
  figures.later_kld_error = later.error;
  figures.top1 = parts.mean([&](size_t i) { return log.agree[i] != 0 ? 1.0 : 0.0; }).mean;
  return figures;
}

}  // namespace

void RowDistribution::set(std::span<const float> logits) {
  logits_ = logits;
  const float largest = largest_of(logits);
  const auto best = std::find(logits.begin(), logits.end(), largest);
  best_ = best == logits.end() ? 0 : static_cast<int32_t>(best - logits.begin());
  weights_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double below = double{logits[i]} - double{largest};
    weights_[i] = below < kLeastExponent ? kLeastExponent : below;
  }
  for (double& weight : weights_) weight = exp_not_positive(weight);
  sum_ = sum_in_lanes(logits.size(), [&](size_t i) { return weights_[i]; });
  log_sum_ = double{largest} + std::log(sum_);
}

double RowDistribution::divergence(const RowDistribution& other) const {
  const double sum = sum_in_lanes(logits_.size(), [&](size_t i) {
    return weights_[i] * (double{logits_[i]} - double{other.logits_[i]});
  });
  // Only rounding can make it negative. NaN stays NaN.
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
  const ByParts all(chosen, depths);
  found.total = figures_of(log, baseline, depths, all, chosen);
  found.total.end_depth = deepest + 1;
  const std::vector<double> klds = all.sums([&](size_t i) { return log.kld[i]; });
  for (size_t part = 0; part < klds.size(); ++part) {
    found.parts.push_back({static_cast<uint64_t>(all.counts()[part]), klds[part]});
  }
  for (int64_t begin = 0, end = kFirstBucket; begin <= deepest; begin = end, end *= kBucketGrowth) {
    chosen.clear();
    for (size_t i = 0; i < depths.size(); ++i) {
      if (depths[i] >= begin && depths[i] < end) chosen.push_back(i);
    }
    if (chosen.empty()) continue;
    found.buckets.push_back(figures_of(log, baseline, depths, ByParts(chosen, depths), chosen));
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
