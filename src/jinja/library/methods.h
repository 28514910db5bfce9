// Tables of the methods of strings, lists and dicts, which templates call behind a dot.
#pragma once

#include <string_view>

#include "jinja/library/builtin.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

struct Method {
  const BuiltinRow* row;
  bool changes;  // it would change the value, which templates may not
};

// Returns nullopt if the type has no such method.
std::optional<Method> find_method(const Value& object, std::string_view name);

Value call_method(Runtime& runtime, const Method& method, const Value& object,
                  const Arguments& arguments);

// The value of `object.method` without a call.
Value bound_method(Runtime& runtime, const Value& object, const Method& method);

// Finds an attribute or method of `loop`.
std::optional<Value> loop_attribute(Runtime& runtime, LoopState& loop, std::string_view name);

std::span<const BuiltinRow> string_methods();

}  // namespace fp8kv::jinja
