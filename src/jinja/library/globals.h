// The functions that templates call by name: range, dict, namespace, raise_exception and
// strftime_now.
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// Returns nullopt if there is no such function.
std::optional<Value> global_of(Runtime& runtime, std::string_view name);

// Sets `name` in a namespace. Throws for names that begin with an underscore.
void set_member(Runtime& runtime, Namespace& space, const std::string& name, Value value);

}  // namespace fp8kv::jinja
