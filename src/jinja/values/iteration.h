// Iterates over values, and returns their lengths.
#pragma once

#include <memory>

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// Items, shared with a list that has them already.
using Items = std::shared_ptr<const Values>;

// Returns the items of a list, the keys of a dict, or the characters of a string. Uses up a
// generator. Throws for values that cannot be iterated.
Items items_of(Runtime& runtime, const Value& value);
bool is_iterable(const Value& value);

// Implements len(value). Throws for values without a length.
size_t length_of(Runtime& runtime, const Value& value);

}  // namespace fp8kv::jinja
