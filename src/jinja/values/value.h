// The values of templates: Python's, as far as chat templates need them. Values are immutable,
// except namespaces and the rest of a generator, which a Runtime owns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/values/marked_text.h"

namespace fp8kv::jinja {

class Value;
class Runtime;
struct LoopState;
using Values = std::vector<Value>;

// A missing value. Any use except printing, looping and testing is an error, which says why it is
// missing.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

struct None {};

struct String {
  std::shared_ptr<const MarkedText> text;
  bool is_markup = false;  // made by the filters safe and escape: + escapes the other operand
};

// A group is a tuple made by the filter groupby. The kinds after it cannot be indexed by number.
enum class SequenceKind { list, tuple, range, group, keys, values, items };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  Values items;
  int nesting = 1;  // levels of nested lists and dicts, including this one
};

struct Dict {
  std::vector<std::pair<Value, Value>> members;  // no two keys are equal
  int nesting = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};

struct Generator {
  std::function<std::optional<Value>()> next;  // returns nothing when it is used up
  int nesting = 1;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Function {
  std::string name;
  std::function<Value(Arguments)> call;
};

using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using FunctionPtr = std::shared_ptr<const Function>;

class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, int64_t, double, String, SequencePtr, DictPtr,
                               Namespace*, FunctionPtr, Generator*, LoopState*>;

  Value() : held_(None{}) {}
  template <typename T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Value>) explicit Value(T&& held)
      : held_(std::forward<T>(held)) {}

  static Value text(MarkedText text);
  static Value text(std::string_view bytes);  // with the origin from_template
  static Value list(Values items, SequenceKind kind = SequenceKind::list);
  static Value dict(std::vector<std::pair<Value, Value>> members);  // REQUIRES distinct keys
  static Value undefined(std::string why);

  const Variant& held() const { return held_; }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  bool is_string() const { return get<String>() != nullptr; }
  // Returns nullptr for any other kind.
  const MarkedText* string() const { return is_string() ? get<String>()->text.get() : nullptr; }
  const Sequence* sequence() const {
    return get<SequencePtr>() ? get<SequencePtr>()->get() : nullptr;
  }
  const Dict* dict() const { return get<DictPtr>() ? get<DictPtr>()->get() : nullptr; }
  // The value of an integer or a bool, which is an integer in Python.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;  // also for an integer

 private:
  Variant held_;
};

// The name of its type in Python: "str", "NoneType".
std::string type_name(const Value& value);

// Its name in messages about attributes: "'dict object'".
std::string object_name(const Value& value);

// Implements Python's bool(value).
bool is_true(const Value& value);

int nesting_of(const Value& value);

}  // namespace fp8kv::jinja
