// Implements Python's ==, <, in and hash().
#pragma once

#include "jinja/values/value.h"

namespace fp8kv::jinja {

bool are_equal(Runtime& runtime, const Value& a, const Value& b);

// Throws for values that Python cannot order. `sign` is for the message.
bool is_less(Runtime& runtime, const Value& a, const Value& b, const char* sign = "<");

bool is_at_most(Runtime& runtime, const Value& a, const Value& b, const char* sign = "<=");

bool contains(Runtime& runtime, const Value& container, const Value& item);

// Throws for values that cannot be keys: lists and dicts.
void check_hashable(Runtime& runtime, const Value& key);

// Makes a dict. For equal keys it keeps the last value, in the place of the first.
Value dict_of(Runtime& runtime, std::vector<std::pair<Value, Value>> members);

// Returns nullptr if there is none.
const Value* find_member(Runtime& runtime, const Dict& dict, const Value& key);
const Value* find_member(Runtime& runtime, const Dict& dict, std::string_view key);

}  // namespace fp8kv::jinja
