// Evaluates a.b, a['b'] and a[1:2].
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// Look up like Jinja's sandbox: attributes before members, or members before attributes. Missing
// names are undefined, and so are methods that would change a list or dict.
Value attribute_of(Runtime& runtime, const Value& object, std::string_view name);
Value item_of(Runtime& runtime, const Value& object, const Value& key);

// Follows the path "a.0.b" of selectattr, map, sort and others, or a single key. Missing values are
// replaced by `otherwise` at each step, unless it is none.
Value at_path(Runtime& runtime, Value object, const Value& path, const Value& otherwise = Value());

// The bounds of a slice; each may be none.
struct SliceBounds {
  Value begin;
  Value end;
  Value step;
};
Value slice_of(Runtime& runtime, const Value& object, const SliceBounds& bounds);

}  // namespace fp8kv::jinja
