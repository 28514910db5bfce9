// Turns one named field of a record into a record of a known form.
#pragma once

#include <string>

#include "json/json.h"

namespace fp8kv {

// Chooses the form by the field's value: {"text": ...} for a string, or for null (an empty text);
// {"messages": ...} or {"conversations": ...} for a list of objects; {"turns": ...} for a list of
// strings; {"input_ids": ...} for a list of numbers. Keeps the other fields that chat templates
// take. Throws for a record without the field, listing its fields, and for any other value.
Json with_column(const Json& record, const std::string& column);

// Throws for a record without the field, as with_column does.
void require_column(const Json& record, const std::string& column);

}  // namespace fp8kv
