#include "eval/standard_errors.h"

#include <algorithm>
#include <cmath>

namespace fp8kv {

std::vector<size_t> error_parts(std::span<const int64_t> depths) {
  std::vector<size_t> begins;  // the first prediction of each window
  for (size_t i = 0; i < depths.size(); ++i) {
    if (i == 0 || depths[i] <= depths[i - 1]) begins.push_back(i);
  }
  const size_t windows = begins.size();
  begins.push_back(depths.size());
  std::vector<size_t> parts;
  size_t first = 0;  // part at which the window begins
  for (size_t window = 0; window < windows; ++window) {
    const size_t length = begins[window + 1] - begins[window];
    const size_t count = std::min(length, (kLeastParts + windows - 1) / windows);
    for (size_t i = 0; i < length; ++i) parts.push_back(first + i * count / length);
    first += count;
  }
  return parts;
}

bool MeanAndError::is_clear() const {
  return std::abs(mean) > 2 * error;
}

MeanAndError mean_over_parts(std::span<const double> sums, std::span<const double> counts) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    sum += sums[i];
    count += counts[i];
  }
  MeanAndError result{sum / count, 0};
  if (sums.size() < 2) return result;
  double squares = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double off = sums[i] - result.mean * counts[i];
    squares += off * off;
  }
  const auto parts = static_cast<double>(sums.size());
  result.error = std::sqrt(squares * parts / (parts - 1)) / count;
  return result;
}

}  // namespace fp8kv
