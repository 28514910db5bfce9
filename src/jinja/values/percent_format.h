// Python's 'text %s' % values and 'text {}'.format(values).
#pragma once

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// `values`: a tuple, a dict for %(name)s, or the one value.
Value percent_formatted(Runtime& runtime, const MarkedText& format, const Value& values);

// Fields by number, by name, or in turn, with !r and !s, and a width with alignment. Throws for
// what else Python has in them.
Value brace_formatted(Runtime& runtime, const MarkedText& format, const Arguments& values);

}  // namespace fp8kv::jinja
