// One named field of a record, as a record of a known form.
#pragma once

#include <string>

#include "json/json.h"

namespace fp8kv {

// By what the field holds: {"text": ...} for a string or null (an empty text), {"messages": ...} or
// {"conversations": ...} for a list of objects, {"turns": ...} for one of strings, {"input_ids":
// ...} for one of numbers. What chat templates take besides stays. Throws, with the fields that
// there are, for a record without it, and for any other value.
Json with_column(const Json& record, const std::string& column);

// Throws as with_column does for a record without it.
void require_column(const Json& record, const std::string& column);

}  // namespace fp8kv
