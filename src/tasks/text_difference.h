// How far the texts of a cache are those of the baseline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tasks/task_report.h"

namespace fp8kv {

struct TextDifference {
  uint64_t compared = 0;   // texts that both wrote
  uint64_t identical = 0;  // of these
  // Of the others: the first token that differs, from 1; the lower of two in the middle.
  std::optional<uint64_t> median_place;
};

// Of answers to the same items in one order. REQUIRES answers with texts.
TextDifference difference_of(std::span<const TaskAnswer> answers,
                             std::span<const TaskAnswer> baseline);

}  // namespace fp8kv
