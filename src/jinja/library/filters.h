// What stands behind a |: the filters of templates, as a table.
#pragma once

#include <span>
#include <string_view>

#include "jinja/library/builtin.h"

namespace fp8kv::jinja {

const BuiltinRow* find_filter(std::string_view name);  // nullptr when there is none

// Throws where there is no such filter.
Value filtered(Runtime& runtime, std::string_view name, const Value& value,
               const Arguments& arguments);

}  // namespace fp8kv::jinja
