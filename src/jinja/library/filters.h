// The table of filters, which templates call behind a |.
#pragma once

#include <span>
#include <string_view>

#include "jinja/library/builtin.h"

namespace fp8kv::jinja {

const BuiltinRow* find_filter(std::string_view name);  // nullptr if there is none

// Applies a filter. Throws if there is no such filter.
Value filtered(Runtime& runtime, std::string_view name, const Value& value,
               const Arguments& arguments);

}  // namespace fp8kv::jinja
