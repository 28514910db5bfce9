// The state of one rendering beside its values: limits, the line for messages, the clock, and
// mutable objects, which values cannot own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

struct Limits {
  uint64_t steps = 100'000'000;          // operations, plus one step per 16 bytes of text made
  size_t text_bytes = size_t{64} << 20;  // of a single text, such as the output
  int depth = 400;                       // nested expressions, statements and macros
  int nesting = 100;                     // nested lists and dicts
};

class Runtime {
 public:
  // `clock`: seconds since 1970, for strftime_now.
  Runtime(std::string name, const Limits& limits, std::function<int64_t()> clock)
      : name_(std::move(name)), limits_(limits), clock_(std::move(clock)) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Throws "NAME: line N: PARTS".
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(cat(name_, ": line ", line_, ": ", parts...));
  }
  // Throws because an undefined value is used. REQUIRES an undefined value.
  [[noreturn]] void fail_undefined(const Value& value) const;

  void at_line(int line) { line_ = line; }
  int line() const { return line_; }

  // Counts steps. Throws beyond the limit.
  void spend(uint64_t steps = 1);
  // Counts the steps of text that is about to be made. Throws if it is too much at once.
  void spend_bytes(size_t bytes);
  void check_size(size_t bytes) const;
  // Counts the steps of a list's items.
  void spend_items(uint64_t items);

  Value text(MarkedText text);
  Value list(Values items, SequenceKind kind = SequenceKind::list);
  // REQUIRES distinct keys; see dict_of.
  Value dict(std::vector<std::pair<Value, Value>> members);
  Value name_space();
  Value generator(std::function<std::optional<Value>()> next, int nesting);

  // Adds one level of nesting while it lives.
  class Level {
   public:
    explicit Level(Runtime& runtime);
    ~Level() { --runtime_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };

  int64_t now() const { return clock_(); }

 private:
  void check_nesting(const Value& value) const;

  std::string name_;
  Limits limits_;
  std::function<int64_t()> clock_;
  int line_ = 1;
  int depth_ = 0;
  uint64_t steps_ = 0;
  uint64_t heard_at_ = 0;
  std::deque<Namespace> namespaces_;
  std::deque<Generator> generators_;
};

}  // namespace fp8kv::jinja
