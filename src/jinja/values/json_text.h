// json.dumps() of Python, and values from JSON.
#pragma once

#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"
#include "json/json.h"

namespace fp8kv::jinja {

struct JsonStyle {
  bool ascii = false;                // \uXXXX for all that is not ASCII
  std::optional<MarkedText> indent;  // of one level; nothing: all on one line
  std::optional<MarkedText> item_separator;
  std::optional<MarkedText> key_separator;
  bool sorted = false;
};

// Throws, as Python does, for what JSON does not have.
MarkedText json_text(Runtime& runtime, const Value& value, const JsonStyle& style);

// Its strings are of the `origin`. Throws for whole numbers that 64 bits do not hold.
Value value_of(const Json& json, Origin origin);

}  // namespace fp8kv::jinja
