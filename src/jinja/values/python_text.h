// Implements Python's str() and repr().
#pragma once

#include <string>

#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

// The printed form of a value. A string is shared, not copied. An undefined value is empty.
std::shared_ptr<const MarkedText> python_str(Runtime& runtime, const Value& value);
MarkedText python_repr(Runtime& runtime, const Value& value);

// Implements repr() of a float: the shortest digits that read back as the same number.
std::string python_float(double value);

}  // namespace fp8kv::jinja
