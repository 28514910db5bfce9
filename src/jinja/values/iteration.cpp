#include "jinja/values/iteration.h"

#include "jinja/values/chars.h"
#include "jinja/values/loop_state.h"
#include "jinja/values/runtime.h"

namespace fp8kv::jinja {
namespace {

Items characters_of(Runtime& runtime, const MarkedText& text) {
  runtime.spend(8 * text.size());
  auto chars = std::make_shared<Values>();
  const std::string& bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = byte_of_char(bytes, at, 1);
    chars->push_back(Value::text(text.part(at, end)));
    at = end;
  }
  return chars;
}

}  // namespace

Items items_of(Runtime& runtime, const Value& value) {
  runtime.spend();
  if (const auto* sequence = value.get<SequencePtr>()) return Items(*sequence, &(*sequence)->items);
  auto items = std::make_shared<Values>();
  if (value.is_undefined()) return items;
  if (const MarkedText* text = value.string()) return characters_of(runtime, *text);
  if (const Dict* dict = value.dict()) {
    runtime.spend(dict->members.size());
    for (const auto& [key, member] : dict->members) items->push_back(key);
    return items;
  }
  if (const auto* generator = value.get<Generator*>()) {
    while (auto item = (*generator)->next()) {
      runtime.spend();
      items->push_back(*std::move(item));
    }
    return items;
  }
  runtime.fail("'", type_name(value), "' object is not iterable");
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.string() || value.sequence() || value.dict() ||
         value.get<Generator*>() || value.get<LoopState*>();
}

size_t length_of(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return 0;
  if (const MarkedText* text = value.string()) {
    runtime.spend(text->size() / 16);
    return char_count(text->bytes());
  }
  if (const Sequence* sequence = value.sequence()) return sequence->items.size();
  if (const Dict* dict = value.dict()) return dict->members.size();
  if (const auto* loop = value.get<LoopState*>()) return (*loop)->items->size();
  runtime.fail("object of type '", type_name(value), "' has no len()");
}

}  // namespace fp8kv::jinja
