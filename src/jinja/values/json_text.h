// Implements Python's json.dumps(), and makes values from JSON.
#pragma once

#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"
#include "json/json.h"

namespace fp8kv::jinja {

struct JsonStyle {
  bool ascii = false;                // writes everything outside ASCII as \uXXXX
  std::optional<MarkedText> indent;  // for one level; absent: all on one line
  std::optional<MarkedText> item_separator;
  std::optional<MarkedText> key_separator;
  bool sorted = false;
};

// Throws like Python for values that JSON does not have.
MarkedText json_text(Runtime& runtime, const Value& value, const JsonStyle& style);

// Strings get the given origin. Throws for integers that exceed 64 bits.
Value value_of(const Json& json, Origin origin);

}  // namespace fp8kv::jinja
