#include "generate/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fp8kv {

LogitSum sum_logits(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float each : logits) sum += std::exp(double{each} - double{*best});
  if (std::isnan(sum)) fail("a logit is NaN, or none is finite");
  return {double{*best} + std::log(sum), static_cast<size_t>(best - logits.begin())};
}

TokenLogProbabilities log_probabilities(std::span<const float> logits, int32_t id, int64_t count) {
  const double log_sum = sum_logits(logits).log_sum;
  const auto of = [&](int32_t token) {
    return TokenLogProbability{token, double{logits[static_cast<size_t>(token)]} - log_sum};
  };
  TokenLogProbabilities out{of(id), {}};
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<int64_t>(count, static_cast<int64_t>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)], right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  for (auto each = ids.begin(); each != end; ++each) out.likeliest.push_back(of(*each));
  return out;
}

}  // namespace fp8kv
