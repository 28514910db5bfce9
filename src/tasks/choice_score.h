// Grades a multiple choice item by the scores of its choices.
#pragma once

#include <cstddef>
#include <span>

#include "generate/scorer.h"
#include "tasks/items/choice_item.h"

namespace fp8kv {

struct ChoiceOutcome {
  size_t chosen = 0;       // the choice with the largest log-probability
  size_t chosen_norm = 0;  // the choice with the largest log-probability per character
  bool acc = false;
  bool acc_norm = false;
};

// Among equal scores the first choice wins.
ChoiceOutcome choice_outcome(const ChoiceItem& item, std::span<const ContinuationScore> scores);

}  // namespace fp8kv
