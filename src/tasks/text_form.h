// Items of the task "generate": any prompt or messages, and what the text must be. Generates
// nothing.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"
#include "tasks/text_item.h"

namespace fp8kv {

// Of `prompt` or `messages`, and `answer`, `pattern` or both. `stop`, `max_tokens` and `subject`
// may be there. Throws, naming the place, for what is missing, of another type or out of range, and
// for an option by the name that other tools give it.
TextItem read_text_item(const Json& record);

// With a pattern, its match must be the answer; without an answer it must match. Without a pattern
// the text must be the answer. Blanks around both count for nothing.
TextGrade grade_text(const TextItem& item, std::string_view text);

}  // namespace fp8kv
