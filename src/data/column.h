// Turns one named field of a record into a record of a known form.
#pragma once

#include <string>

#include "json/json.h"

namespace fp8kv {

// Chooses the form by the field's value:
// - a string, or null as an empty text: {"text": ...};
// - a list of objects: {"messages": ...} or {"conversations": ...};
// - a list of strings: {"turns": ...};
// - a list of numbers: {"input_ids": ...}.
// Keeps the other fields that chat templates take. Throws for any other value. Throws for a record
// without the field, with a list of its fields.
Json with_column(const Json& record, const std::string& column);

// Throws for a record without the field, as with_column does.
void require_column(const Json& record, const std::string& column);

}  // namespace fp8kv
