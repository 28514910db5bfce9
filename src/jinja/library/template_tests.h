// The table of tests, which templates call with `is`.
#pragma once

#include <string_view>

#include "jinja/library/builtin.h"

namespace fp8kv::jinja {

const BuiltinRow* find_test(std::string_view name);  // nullptr if there is none

// Throws if there is no such test.
bool passes_test(Runtime& runtime, std::string_view name, const Value& value,
                 const Arguments& arguments);

}  // namespace fp8kv::jinja
