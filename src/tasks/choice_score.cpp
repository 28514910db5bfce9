#include "tasks/choice_score.h"

#include "tasks/items/python_text.h"

namespace fp8kv {

ChoiceOutcome choice_outcome(const ChoiceItem& item, std::span<const ContinuationScore> scores) {
  ChoiceOutcome outcome;
  const auto sum = [&](size_t i) { return scores[i].log_probability; };
  const auto norm = [&](size_t i) {
    return sum(i) / static_cast<double>(count_characters(item.choices[i]));
  };
  for (size_t i = 1; i < scores.size(); ++i) {
    if (sum(i) > sum(outcome.chosen)) outcome.chosen = i;
    if (norm(i) > norm(outcome.chosen_norm)) outcome.chosen_norm = i;
  }
  outcome.acc = outcome.chosen == item.answer;
  outcome.acc_norm = outcome.chosen_norm == item.answer;
  return outcome;
}

}  // namespace fp8kv
