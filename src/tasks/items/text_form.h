// Reads and grades items of the task "generate": any prompt or messages, and the expected text.
// Generates nothing.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"
#include "tasks/items/text_item.h"

namespace fp8kv {

// Reads `prompt` or `messages`, and `answer`, `pattern` or both. Optional fields: `stop`,
// `max_tokens` and `subject`. Throws if a field is missing, of another type, out of range, or has
// the name that other tools use. The error names the place.
TextItem read_text_item(const Json& record);

// Grades a text by pattern and answer. The pattern's match, or the whole text without a pattern,
// must equal the answer, except for blanks around it. Without an answer a match is enough.
TextGrade grade_text(const TextItem& item, std::string_view text);

}  // namespace fp8kv
