#include "jinja/library/methods.h"

#include <algorithm>
#include <array>

#include "jinja/values/compare.h"
#include "jinja/values/iteration.h"
#include "jinja/values/loop_state.h"

namespace fp8kv::jinja {
namespace {

Value count_of_item(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  return Value(
      static_cast<int64_t>(std::count_if(items->begin(), items->end(), [&](const Value& each) {
        return are_equal(call.runtime, each, *call.args[0]);
      })));
}

Value index_of_item(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  for (size_t i = 0; i < items->size(); ++i) {
    if (are_equal(call.runtime, (*items)[i], *call.args[0])) return Value(static_cast<int64_t>(i));
  }
  call.runtime.fail("the value is not in the ", type_name(call.self));
}

Value copied(Call& call) {
  return call.self;
}

Value dict_get(Call& call) {
  check_hashable(call.runtime, *call.args[0]);
  const Value* found = find_member(call.runtime, *call.self.dict(), *call.args[0]);
  return found ? *found : call.get(1, Value());
}

Value dict_parts(Call& call, SequenceKind kind) {
  call.runtime.spend_items(call.self.dict()->members.size());
  Values parts;
  for (const auto& [key, value] : call.self.dict()->members) {
    if (kind == SequenceKind::items) {
      parts.push_back(Value::list({key, value}, SequenceKind::tuple));
    } else {
      parts.push_back(kind == SequenceKind::keys ? key : value);
    }
  }
  return call.runtime.list(std::move(parts), kind);
}

Value dict_items(Call& call) {
  return dict_parts(call, SequenceKind::items);
}
Value dict_keys(Call& call) {
  return dict_parts(call, SequenceKind::keys);
}
Value dict_values(Call& call) {
  return dict_parts(call, SequenceKind::values);
}

constexpr std::array<BuiltinRow, 6> kDictMethods = {{{"copy", "", copied},
                                                     {"fromkeys", "*", nullptr},
                                                     {"get", "key default?", dict_get},
                                                     {"items", "", dict_items},
                                                     {"keys", "", dict_keys},
                                                     {"values", "", dict_values}}};
constexpr std::array<BuiltinRow, 3> kListMethods = {
    {{"copy", "", copied}, {"count", "value", count_of_item}, {"index", "value", index_of_item}}};
constexpr std::array<BuiltinRow, 2> kTupleMethods = {
    {{"count", "value", count_of_item}, {"index", "value", index_of_item}}};

// Methods that change a value. They are refused before a call, so the rows only hold their names.
constexpr std::array<BuiltinRow, 5> kDictChanges = {{{"clear", "", nullptr},
                                                     {"pop", "", nullptr},
                                                     {"popitem", "", nullptr},
                                                     {"setdefault", "", nullptr},
                                                     {"update", "", nullptr}}};
constexpr std::array<BuiltinRow, 8> kListChanges = {{{"append", "", nullptr},
                                                     {"clear", "", nullptr},
                                                     {"extend", "", nullptr},
                                                     {"insert", "", nullptr},
                                                     {"pop", "", nullptr},
                                                     {"remove", "", nullptr},
                                                     {"reverse", "", nullptr},
                                                     {"sort", "", nullptr}}};

std::optional<Method> method_in(std::span<const BuiltinRow> rows,
                                std::span<const BuiltinRow> changes, std::string_view name) {
  if (const BuiltinRow* row = find_row(rows, name)) return Method{row, false};
  if (const BuiltinRow* row = find_row(changes, name)) return Method{row, true};
  return std::nullopt;
}

Value cycled(Runtime& runtime, LoopState& loop, const Arguments& arguments) {
  if (arguments.positional.empty()) runtime.fail("no items for cycling given");
  return arguments.positional[loop.index % arguments.positional.size()];
}

Value has_changed(Runtime& runtime, LoopState& loop, Arguments arguments) {
  bool same = loop.changed_last && loop.changed_last->size() == arguments.positional.size();
  for (size_t i = 0; same && i < arguments.positional.size(); ++i) {
    same = are_equal(runtime, (*loop.changed_last)[i], arguments.positional[i]);
  }
  if (!same) loop.changed_last = std::move(arguments.positional);
  return Value(!same);
}

Value neighbour(LoopState& loop, bool next) {
  if (next ? loop.index + 1 < loop.items->size() : loop.index > 0) {
    return (*loop.items)[next ? loop.index + 1 : loop.index - 1];
  }
  return Value::undefined(next ? "there is no next item" : "there is no previous item");
}

}  // namespace

std::optional<Method> find_method(const Value& object, std::string_view name) {
  if (object.is_string()) return method_in(string_methods(), {}, name);
  if (object.dict()) return method_in(kDictMethods, kDictChanges, name);
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr) return std::nullopt;
  if (sequence->kind == SequenceKind::list) return method_in(kListMethods, kListChanges, name);
  if (sequence->kind <= SequenceKind::group) return method_in(kTupleMethods, {}, name);
  return std::nullopt;
}

Value call_method(Runtime& runtime, const Method& method, const Value& object,
                  const Arguments& arguments) {
  if (method.changes) {
    runtime.fail("access to attribute '", method.row->name, "' of '", type_name(object),
                 "' object is unsafe: templates may not change what they are given");
  }
  return call_row(runtime, *method.row, "method", object, arguments);
}

Value bound_method(Runtime& runtime, const Value& object, const Method& method) {
  const auto call = [&runtime, object, method](const Arguments& arguments) {
    return call_method(runtime, method, object, arguments);
  };
  return Value(std::make_shared<const Function>(Function{std::string(method.row->name), call}));
}

std::optional<Value> loop_attribute(Runtime& runtime, LoopState& loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index);
  const auto size = static_cast<int64_t>(loop.items->size());
  const auto function = [&](auto run) {
    const auto call = [&runtime, &loop, run](Arguments arguments) {
      return run(runtime, loop, std::move(arguments));
    };
    return Value(std::make_shared<const Function>(Function{std::string(name), call}));
  };
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(size - index);
  if (name == "revindex0") return Value(size - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(loop.depth);
  if (name == "depth0") return Value(loop.depth - 1);
  if (name == "previtem") return neighbour(loop, false);
  if (name == "nextitem") return neighbour(loop, true);
  if (name == "cycle") return function(cycled);
  if (name == "changed") return function(has_changed);
  return std::nullopt;
}

}  // namespace fp8kv::jinja
