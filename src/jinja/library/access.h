// a.b, a['b'] and a[1:2].
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// As Jinja's sandbox looks them up: attributes before members, or members before attributes. What
// is not there, and what would change a list or a dict, is undefined.
Value attribute_of(Runtime& runtime, const Value& object, std::string_view name);
Value item_of(Runtime& runtime, const Value& object, const Value& key);

// The path "a.0.b" of selectattr, map, sort and others, or one key. `otherwise`, unless it is none,
// stands for what is not there, at each step.
Value at_path(Runtime& runtime, Value object, const Value& path, const Value& otherwise = Value());

// Each may be none.
struct SliceBounds {
  Value begin;
  Value end;
  Value step;
};
Value slice_of(Runtime& runtime, const Value& object, const SliceBounds& bounds);

}  // namespace fp8kv::jinja
