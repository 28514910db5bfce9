// Implements + - * / // % ** and the like with Python's rules.
#pragma once

#include "jinja/values/value.h"

namespace fp8kv::jinja {

enum class Operator { add, subtract, multiply, divide, floor_divide, modulo, power };

Value apply(Runtime& runtime, Operator op, const Value& a, const Value& b);
Value negated(Runtime& runtime, const Value& value);
Value unchanged(Runtime& runtime, const Value& value);  // +value

// The filter escape: writes & < > ' " as HTML does.
Value escaped(Runtime& runtime, const Value& value);

}  // namespace fp8kv::jinja
