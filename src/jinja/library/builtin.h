// A function that templates can call, as a row of a table: its name, its parameters, and the code.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "jinja/values/runtime.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

// One call of a row. `args` has a place for each parameter, nullptr where it was not given.
struct Call {
  Runtime& runtime;
  const Value& self;  // what stands before the | or the dot, or is asked about by `is`
  const Arguments& raw;
  std::vector<const Value*> args;

  // Of a parameter that may be left out.
  const Value& get(size_t index, const Value& otherwise) const {
    return args[index] ? *args[index] : otherwise;
  }
  bool flag(size_t index, bool otherwise) const;
  int64_t whole(size_t index, int64_t otherwise) const;  // throws for what is no whole number
};

using Builtin = Value (*)(Call& call);

struct BuiltinRow {
  std::string_view name;
  // Names apart by spaces, in order; a '?' behind those that may be left out. "*": any, which the
  // code reads from `raw`.
  std::string_view parameters;
  Builtin run;  // nullptr: known, and refused by name
};

// nullptr when there is none. REQUIRES rows in the order of their names.
const BuiltinRow* find_row(std::span<const BuiltinRow> rows, std::string_view name);

// `kind`: "filter", for messages. Throws for arguments that do not fit the parameters.
Value call_row(Runtime& runtime, const BuiltinRow& row, std::string_view kind, const Value& self,
               const Arguments& arguments);

}  // namespace fp8kv::jinja
