// The values of templates: Python's, as far as chat templates know them. None can be changed, but
// for namespaces and what a generator has left, which a Runtime owns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/values/marked_text.h"

namespace fp8kv::jinja {

class Value;
class Runtime;
struct LoopState;
using Values = std::vector<Value>;

// Where nothing is; any use but printing, looping and asking is an error, which says why.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

struct None {};

struct String {
  std::shared_ptr<const MarkedText> text;
  bool is_markup = false;  // of the filters safe and escape: + escapes what is put beside it
};

// A group is a tuple of the filter groupby. Those after it have no elements by number.
enum class SequenceKind { list, tuple, range, group, keys, values, items };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  Values items;
  int nesting = 1;  // levels of lists and dicts in it, itself included
};

struct Dict {
  std::vector<std::pair<Value, Value>> members;  // no two keys are equal
  int nesting = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};

struct Generator {
  std::function<std::optional<Value>()> next;  // nothing when it is used up
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
  static Value text(std::string_view bytes);  // of the template
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
  // nullptr for any other kind.
  const MarkedText* string() const { return is_string() ? get<String>()->text.get() : nullptr; }
  const Sequence* sequence() const {
    return get<SequencePtr>() ? get<SequencePtr>()->get() : nullptr;
  }
  const Dict* dict() const { return get<DictPtr>() ? get<DictPtr>()->get() : nullptr; }
  // An integer or a bool, as Python's bool is an integer.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;  // of an integer, too

 private:
  Variant held_;
};

// Python's name of its type: "str", "NoneType".
std::string type_name(const Value& value);

// "'dict object'": what messages about attributes call it.
std::string object_name(const Value& value);

// Python's bool(value).
bool is_true(const Value& value);

int nesting_of(const Value& value);

}  // namespace fp8kv::jinja
