#include "jinja/values/runtime.h"

#include <algorithm>
#include <utility>

#include "base/interrupt.h"

namespace fp8kv::jinja {
namespace {

constexpr uint64_t kBytesAStep = 16;
constexpr uint64_t kStepsBetweenLooks = 4096;
// Steps for the memory of values, at about 20 bytes per step. So the limit of steps also limits
// memory.
constexpr uint64_t kStepsAText = 8;
constexpr uint64_t kStepsAList = 8;
constexpr uint64_t kStepsAnItem = 4;

}  // namespace

void Runtime::fail_undefined(const Value& value) const {
  fail(*value.get<Undefined>()->why);
}

void Runtime::spend(uint64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps) {
    fail("the template takes more than ", grouped(limits_.steps), " steps");
  }
  if (steps_ - heard_at_ < kStepsBetweenLooks) return;
  heard_at_ = steps_;
  check_interrupt();
}

void Runtime::check_size(size_t bytes) const {
  if (bytes <= limits_.text_bytes) return;
  fail("the template makes a text of more than ", human_bytes(limits_.text_bytes));
}

void Runtime::spend_bytes(size_t bytes) {
  check_size(bytes);
  spend(1 + bytes / kBytesAStep);
}

void Runtime::spend_items(uint64_t items) {
  spend(kStepsAnItem * std::min(items, limits_.steps));
}

Value Runtime::text(MarkedText text) {
  spend_bytes(text.size());
  spend(kStepsAText);
  return Value::text(std::move(text));
}

void Runtime::check_nesting(const Value& value) const {
  if (nesting_of(value) > limits_.nesting) {
    fail("lists and dicts are more than ", limits_.nesting, " levels deep");
  }
}

Value Runtime::list(Values items, SequenceKind kind) {
  spend(kStepsAList);
  spend_items(items.size());
  Value made = Value::list(std::move(items), kind);
  check_nesting(made);
  return made;
}

Value Runtime::dict(std::vector<std::pair<Value, Value>> members) {
  spend(kStepsAList);
  spend_items(2 * members.size());
  Value made = Value::dict(std::move(members));
  check_nesting(made);
  return made;
}

Value Runtime::name_space() {
  spend();
  return Value(&namespaces_.emplace_back());
}

Value Runtime::generator(std::function<std::optional<Value>()> next, int nesting) {
  spend();
  Value made(&generators_.emplace_back(Generator{std::move(next), nesting + 1}));
  check_nesting(made);
  return made;
}

Runtime::Level::Level(Runtime& runtime) : runtime_(runtime) {
  if (runtime.depth_ >= runtime.limits_.depth) {
    runtime.fail("the template goes more than ", runtime.limits_.depth, " levels deep");
  }
  ++runtime.depth_;
}

}  // namespace fp8kv::jinja
