// str() and repr() of Python.
#pragma once

#include <string>

#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

// What is printed. A string itself, shared; nothing of what is undefined.
std::shared_ptr<const MarkedText> python_str(Runtime& runtime, const Value& value);
MarkedText python_repr(Runtime& runtime, const Value& value);

// repr() of a float: the shortest digits that read back as the same.
std::string python_float(double value);

}  // namespace fp8kv::jinja
