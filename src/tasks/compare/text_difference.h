// Compares the texts of a cache with those of the baseline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tasks/compare/task_report.h"

namespace fp8kv {

struct TextDifference {
  uint64_t compared = 0;   // texts that both wrote
  uint64_t identical = 0;  // compared texts that are equal
  // Median place of the first different token, from 1, over the texts that differ. The lower of two
  // middle values.
  std::optional<uint64_t> median_place;
  // Divergence per token from the baseline's predictions, up to where each text parts. Lower
  // bounds, see tasks/compare/text_divergence.h.
  double kld = 0;
  std::optional<double> kld_error;  // standard error, with texts as independent; needs two texts
};

// Compares answers to the same items in the same order. REQUIRES answers with texts.
TextDifference difference_of(std::span<const TaskAnswer> answers,
                             std::span<const TaskAnswer> baseline);

}  // namespace fp8kv
