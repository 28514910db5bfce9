// Divides a text into parts and computes standard errors over them. Neighbouring tokens depend on
// each other, so errors over tokens would be too small. Parts are treated as independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fp8kv {

// The fewest parts of a text, if it has enough predictions. Each window is a part. With fewer
// windows, each window is cut into equal parts.
inline constexpr size_t kLeastParts = 16;

// The part of each prediction, counted from 0. depths[i] is the number of tokens before prediction
// i in its window. Predictions are in text order; a window begins where depths do not increase.
std::vector<size_t> error_parts(std::span<const int64_t> depths);

struct MeanAndError {
  double mean = 0;
  double error = 0;  // standard error of the mean; 0 with a single part

  // Whether the mean differs from 0 by more than two standard errors. False for NaN.
  bool is_clear() const;
};

// The mean of all values; sums[i] / counts[i] is the mean of part i. The error is that of a ratio
// of sums, so parts may differ in size.
MeanAndError mean_over_parts(std::span<const double> sums, std::span<const double> counts);

}  // namespace fp8kv
