// The forms of multiple choice items that data sets are published in: a table, one row per form,
// with the prompt that lm-evaluation-harness 0.4.13 makes of it. Reads one record; no files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "json/json.h"
#include "tasks/choice_item.h"

namespace fp8kv {

struct ChoiceForm {
  std::string name;                 // "mmlu"
  std::vector<std::string> fields;  // all must be there
  std::string summary;              // for people
  bool by_length = false;           // acc_norm is the main score
};

// In the order in which a record is matched.
std::span<const ChoiceForm> choice_forms();

// The form that a record has. Throws, with the fields of each form, for a record that fits none.
const ChoiceForm& choice_form_of(const Json& record);

// Throws, naming the place, for a field of another type, fewer than two choices, an empty one, and
// an answer that is none of them.
ChoiceItem read_choice_item(const Json& record);

}  // namespace fp8kv
