// What one rendering has beside its values: limits, the place that messages name, the clock, and
// what can be changed and so cannot be owned by values.
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
  uint64_t steps = 100'000'000;          // things done, and 16 bytes of text made
  size_t text_bytes = size_t{64} << 20;  // of one text, the output among them
  int depth = 400;                       // expressions, statements and macros within each other
  int nesting = 100;                     // lists and dicts within each other
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
  // For use of what is not there. REQUIRES an undefined value.
  [[noreturn]] void fail_undefined(const Value& value) const;

  void at_line(int line) { line_ = line; }
  int line() const { return line_; }

  // Throws when there have been too many.
  void spend(uint64_t steps = 1);
  // The same for text that is about to be made; throws for too much at once.
  void spend_bytes(size_t bytes);
  void check_size(size_t bytes) const;
  // The same for items of a list.
  void spend_items(uint64_t items);

  Value text(MarkedText text);
  Value list(Values items, SequenceKind kind = SequenceKind::list);
  // REQUIRES distinct keys; see dict_of.
  Value dict(std::vector<std::pair<Value, Value>> members);
  Value name_space();
  Value generator(std::function<std::optional<Value>()> next, int nesting);

  // As long as one lives, there is one more level.
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
