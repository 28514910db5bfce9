// Implements Python's 'text %s' % values and 'text {}'.format(values).
#pragma once

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// `values`: a tuple, a dict for %(name)s, or a single value.
Value percent_formatted(Runtime& runtime, const MarkedText& format, const Value& values);

// Supports fields by number, by name or in turn, with !r and !s, and a width with alignment. Throws
// for Python's other features.
Value brace_formatted(Runtime& runtime, const MarkedText& format, const Arguments& values);

}  // namespace fp8kv::jinja
