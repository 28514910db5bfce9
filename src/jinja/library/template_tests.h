// What `is` asks: the tests of templates, as a table.
#pragma once

#include <string_view>

#include "jinja/library/builtin.h"

namespace fp8kv::jinja {

const BuiltinRow* find_test(std::string_view name);  // nullptr when there is none

// Throws where there is no such test.
bool passes_test(Runtime& runtime, std::string_view name, const Value& value,
                 const Arguments& arguments);

}  // namespace fp8kv::jinja
