// What can be looped over, and what has a length.
#pragma once

#include <memory>

#include "jinja/values/value.h"

namespace fp8kv::jinja {

// Items, shared with a list that has them already.
using Items = std::shared_ptr<const Values>;

// Of a dict its keys, of a string its characters; uses up a generator. Throws for what cannot be
// looped over.
Items items_of(Runtime& runtime, const Value& value);
bool is_iterable(const Value& value);

// len(value). Throws for what has none.
size_t length_of(Runtime& runtime, const Value& value);

}  // namespace fp8kv::jinja
