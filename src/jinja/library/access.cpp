#include "jinja/library/access.h"

#include <algorithm>
#include <charconv>

#include "jinja/library/methods.h"
#include "jinja/values/chars.h"
#include "jinja/values/compare.h"
#include "jinja/values/loop_state.h"
#include "jinja/values/python_text.h"
#include "jinja/values/runtime.h"

namespace fp8kv::jinja {
namespace {

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined(cat(object_name(object), " has no attribute '", name, "'"));
}

const Value* namespace_member(Runtime& runtime, const Value& object, std::string_view name) {
  const auto* space = object.get<Namespace*>();
  if (space == nullptr) return nullptr;
  runtime.spend(1 + (*space)->members.size() / 8);
  for (const auto& [each, value] : (*space)->members) {
    if (each == name) return &value;
  }
  return nullptr;
}

// The value that Python's getattr() would find.
std::optional<Value> own_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (const auto* loop = object.get<LoopState*>()) return loop_attribute(runtime, **loop, name);
  if (const Value* member = namespace_member(runtime, object, name)) return *member;
  const Sequence* sequence = object.sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::group) {
    if (name == "grouper") return sequence->items[0];
    if (name == "list") return sequence->items[1];
  }
  const std::optional<Method> method = find_method(object, name);
  if (!method) return std::nullopt;
  if (method->changes) {
    return Value::undefined(
        cat("access to attribute '", name, "' of '", type_name(object), "' object is unsafe."));
  }
  return bound_method(runtime, object, *method);
}

std::optional<Value> element_at(const Value& object, int64_t index) {
  const auto place = [&](size_t size) -> std::optional<size_t> {
    const auto count = static_cast<int64_t>(size);
    const int64_t at = index < 0 ? index + count : index;
    return at < 0 || at >= count ? std::nullopt : std::optional(static_cast<size_t>(at));
  };
  if (const Sequence* sequence = object.sequence()) {
    if (sequence->kind > SequenceKind::group) return std::nullopt;
    const auto at = place(sequence->items.size());
    return at ? std::optional(sequence->items[*at]) : std::nullopt;
  }
  const MarkedText* text = object.string();
  const auto at = text ? place(char_count(text->bytes())) : std::nullopt;
  if (!at) return std::nullopt;
  const size_t begin = byte_of_char(text->bytes(), 0, *at);
  return Value::text(text->part(begin, byte_of_char(text->bytes(), begin, 1)));
}

// The bounds and the step of a Python slice.
struct Range {
  int64_t begin;
  int64_t end;
  int64_t step;
};

Range range_of(Runtime& runtime, const SliceBounds& bounds, int64_t size) {
  const auto number = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (value.is_undefined()) runtime.fail_undefined(value);
    if (!value.integer()) runtime.fail("slice indices must be integers or None");
    return *value.integer();
  };
  const int64_t step = number(bounds.step, 1);
  if (step == 0) runtime.fail("slice step cannot be zero");
  const int64_t least = step > 0 ? 0 : -1;
  const int64_t most = step > 0 ? size : size - 1;
  const auto place = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    int64_t at = number(value, 0);
    if (at < 0) at += size;
    return std::clamp(at, least, most);
  };
  return step > 0 ? Range{place(bounds.begin, 0), place(bounds.end, size), step}
                  : Range{place(bounds.begin, size - 1), place(bounds.end, -1), step};
}

// Calls f with each index. Guards against overflow, since steps can be as large as any number.
template <typename F>
void for_each_index(const Range& range, F&& f) {
  for (int64_t at = range.begin; range.step > 0 ? at < range.end : at > range.end;) {
    f(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, range.step, &at)) return;
  }
}

Value slice_of_text(Runtime& runtime, const MarkedText& text, const SliceBounds& bounds) {
  runtime.spend_bytes(text.size());
  const std::string& bytes = text.bytes();
  const Range range = range_of(runtime, bounds, static_cast<int64_t>(char_count(bytes)));
  if (range.step == 1) {
    if (range.begin >= range.end) return Value::text("");
    const size_t begin = byte_of_char(bytes, 0, static_cast<size_t>(range.begin));
    const auto chars = static_cast<size_t>(range.end - range.begin);
    return runtime.text(text.part(begin, byte_of_char(bytes, begin, chars)));
  }
  std::vector<size_t> starts;
  for (size_t at = 0; at < bytes.size(); at = byte_of_char(bytes, at, 1)) starts.push_back(at);
  starts.push_back(bytes.size());
  MarkedText out;
  for_each_index(range, [&](size_t i) { out.append(text, starts[i], starts[i + 1]); });
  return runtime.text(std::move(out));
}

}  // namespace

Value attribute_of(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (auto own = own_attribute(runtime, object, name)) return *std::move(own);
  const Dict* dict = object.dict();
  const Value* member = dict ? find_member(runtime, *dict, name) : nullptr;
  return member ? *member : no_attribute(object, name);
}

Value item_of(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (const Dict* dict = object.dict()) {
    const Sequence* sequence = key.sequence();
    const bool is_key = !key.dict() && (!sequence || sequence->kind == SequenceKind::tuple);
    const Value* member = is_key ? find_member(runtime, *dict, key) : nullptr;
    if (member) return *member;
  } else if (const auto index = key.integer()) {
    if (const MarkedText* text = object.string()) runtime.spend(text->size() / 16);
    if (auto element = element_at(object, *index)) return *std::move(element);
  }
  if (const MarkedText* name = key.string()) {
    runtime.spend(1 + name->size() / 16);
    if (auto own = own_attribute(runtime, object, name->bytes())) return *std::move(own);
    return no_attribute(object, name->bytes());
  }
  const std::string of = object.is_none() ? "None" : type_name(object) + " object";
  return Value::undefined(cat(of, " has no element ", python_repr(runtime, key).bytes()));
}

Value at_path(Runtime& runtime, Value object, const Value& path, const Value& otherwise) {
  const auto step = [&](const Value& key) {
    object = item_of(runtime, object, key);
    if (object.is_undefined() && !otherwise.is_none()) object = otherwise;
  };
  if (path.string() == nullptr) {
    step(path);
    return object;
  }
  const std::string_view names = path.string()->bytes();
  runtime.spend(1 + names.size() / 16);
  for (size_t at = 0; at <= names.size();) {
    runtime.spend(4);
    const size_t end = std::min(names.find('.', at), names.size());
    const std::string_view part = names.substr(at, end - at);
    int64_t index = 0;
    const auto [after, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index =
        error == std::errc() && after == part.data() + part.size() && part[0] != '-';
    step(is_index ? Value(index) : Value::text(part));
    at = end + 1;
  }
  return object;
}

Value slice_of(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (const MarkedText* text = object.string()) return slice_of_text(runtime, *text, bounds);
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr || sequence->kind > SequenceKind::group) {
    runtime.fail("'", type_name(object), "' object is not subscriptable by a slice");
  }
  const Range range = range_of(runtime, bounds, static_cast<int64_t>(sequence->items.size()));
  Values items;
  for_each_index(range, [&](size_t i) { items.push_back(sequence->items[i]); });
  return runtime.list(std::move(items), sequence->kind);
}

}  // namespace fp8kv::jinja
