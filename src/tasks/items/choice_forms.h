// A table of the forms in which data sets publish multiple choice items. Each form makes the prompt
// that lm-evaluation-harness 0.4.13 makes. Reads single records, no files.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "tasks/items/choice_item.h"

namespace fp8kv {

struct ChoiceForm {
  std::string name;                 // "mmlu"
  std::vector<std::string> fields;  // a record of this form has all of them
  bool by_length = false;           // whether acc_norm is the main score
};

// Returns the form of a record. Throws if it has none; the error lists the fields of each form.
const ChoiceForm& choice_form_of(const Json& record);

// Reads an item. Throws if a field has the wrong type, there are fewer than two choices, one is
// empty, or the answer is none of them. The error names the place.
ChoiceItem read_choice_item(const Json& record);

}  // namespace fp8kv
