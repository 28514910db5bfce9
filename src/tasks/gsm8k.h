// Items of GSM8K as lm-evaluation-harness 0.4.13 asks them and grades their answers (its task
// "gsm8k", version 3). Generates nothing.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"
#include "tasks/text_item.h"

namespace fp8kv {

// Of `question` and `answer`, which ends in "#### 18". Throws, naming the place, for a field that
// is missing, empty or of another type.
TextItem read_gsm8k_item(const Json& record);

// By strict-match, the number behind the first "#### ", and by flexible-extract, the last number.
TextGrade grade_gsm8k(const TextItem& item, std::string_view text);

// What both numbers are compared as: without commas, dollars, all up to the last "#### ", and a
// full stop at the end, in lower case.
std::string gsm8k_number(std::string_view text);

}  // namespace fp8kv
