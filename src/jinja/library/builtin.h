// A function that templates can call, as a table row: its name, its parameters, and the code.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "jinja/values/runtime.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

// One call of a row. `args` has one entry for each parameter, nullptr if it was not given.
struct Call {
  Runtime& runtime;
  const Value& self;  // the value before the | or the dot, or the one that `is` tests
  const Arguments& raw;
  std::vector<const Value*> args;

  // The value of an optional parameter.
  const Value& get(size_t index, const Value& otherwise) const {
    return args[index] ? *args[index] : otherwise;
  }
  bool flag(size_t index, bool otherwise) const;
  int64_t whole(size_t index, int64_t otherwise) const;  // throws unless it is an integer
};

using Builtin = Value (*)(Call& call);

struct BuiltinRow {
  std::string_view name;
  // Parameter names in order, separated by spaces; '?' marks optional ones. "*" allows any
  // arguments, which the code reads from `raw`.
  std::string_view parameters;
  Builtin run;  // nullptr: a known function that is refused by name
};

// Returns nullptr if there is none. REQUIRES rows sorted by name.
const BuiltinRow* find_row(std::span<const BuiltinRow> rows, std::string_view name);

// `kind`: "filter", for messages. Throws if the arguments do not fit the parameters.
Value call_row(Runtime& runtime, const BuiltinRow& row, std::string_view kind, const Value& self,
               const Arguments& arguments);

}  // namespace fp8kv::jinja
