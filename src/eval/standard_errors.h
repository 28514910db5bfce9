// Parts of a text, and standard errors over them. Neighbouring tokens depend on each other, so that
// errors over tokens come out too small; parts are taken as independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fp8kv {

// A text has at least so many parts, if it has as many predictions. Each part is a window; if there
// are fewer windows, each window is cut into equal parts.
inline constexpr size_t kLeastParts = 16;

// The part of each prediction, counted from 0. depths[i] is the number of tokens before prediction
// i within its window. Predictions are in the order of the text, and a window begins where depths
// do not rise.
std::vector<size_t> error_parts(std::span<const int64_t> depths);

struct MeanAndError {
  double mean = 0;
  double error = 0;  // standard error of the mean; 0 with a single part

  // The mean differs from 0 by more than two standard errors. False for NaN.
  bool is_clear() const;
};

// Mean of all values: sums[i] / counts[i] is that of part i. The error is that of a ratio of sums,
// so that parts may have different sizes.
MeanAndError mean_over_parts(std::span<const double> sums, std::span<const double> counts);

}  // namespace fp8kv
