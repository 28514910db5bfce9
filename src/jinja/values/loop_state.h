// The variable `loop` of a template.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "jinja/values/value.h"

namespace fp8kv::jinja {

struct LoopState {
  std::shared_ptr<const Values> items;
  size_t index = 0;
  int64_t depth = 1;
  std::optional<Values> changed_last = {};
  std::function<Value(const Value&)> recurse = {};  // for a loop marked recursive
};

}  // namespace fp8kv::jinja
