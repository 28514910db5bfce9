// From the scores of an item's choices to whether it was answered right.
#pragma once

#include <cstddef>
#include <span>

#include "generate/scorer.h"
#include "tasks/choice_item.h"

namespace fp8kv {

struct ChoiceOutcome {
  size_t chosen = 0;       // of the largest log-probability
  size_t chosen_norm = 0;  // of the largest log-probability per character of the choice
  bool acc = false;
  bool acc_norm = false;
};

// The first of equals is chosen.
ChoiceOutcome choice_outcome(const ChoiceItem& item, std::span<const ContinuationScore> scores);

}  // namespace fp8kv
