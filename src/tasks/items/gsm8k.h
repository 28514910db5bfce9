// Reads items of GSM8K and grades their answers, like the task "gsm8k", version 3, of
// lm-evaluation-harness 0.4.13. Generates nothing.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"
#include "tasks/items/text_item.h"

namespace fp8kv {

// Reads the fields `question` and `answer`, which ends in the right number, like "#### 18". Throws
// if a field is missing, empty or of another type. The error names the place.
TextItem read_gsm8k_item(const Json& record);

// Gives two scores: strict-match takes the number behind the first "#### ", flexible-extract the
// last number of the text.
TextGrade grade_gsm8k(const TextItem& item, std::string_view text);

// Normalises a number before a comparison. Removes commas, dollar signs, all text up to the last
// "#### " and a full stop at the end, and lowers the case.
std::string gsm8k_number(std::string_view text);

}  // namespace fp8kv
