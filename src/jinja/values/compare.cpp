#include "jinja/values/compare.h"

#include <algorithm>

#include "jinja/values/iteration.h"
#include "jinja/values/runtime.h"
#include "jinja/values/text_search.h"

namespace fp8kv::jinja {
namespace {

bool are_equal_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!are_equal(runtime, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool are_equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.members.size() != b.members.size()) return false;
  for (const auto& [key, value] : a.members) {
    const Value* other = find_member(runtime, b, key);
    if (other == nullptr || !are_equal(runtime, value, *other)) return false;
  }
  return true;
}

bool is_less_sequence(Runtime& runtime, const Sequence& a, const Sequence& b, const char* sign) {
  const size_t shared = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < shared; ++i) {
    if (are_equal(runtime, a.items[i], b.items[i])) continue;
    return is_less(runtime, a.items[i], b.items[i], sign);
  }
  return a.items.size() < b.items.size();
}

}  // namespace

bool are_equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.spend();
  if (a.integer() && b.integer()) return *a.integer() == *b.integer();
  if (a.number() && b.number()) return *a.number() == *b.number();
  if (a.string() && b.string()) {
    runtime.spend(std::min(a.string()->size(), b.string()->size()) / 64);
    return a.string()->bytes() == b.string()->bytes();
  }
  if (a.sequence() && b.sequence()) {
    return are_equal_sequences(runtime, *a.sequence(), *b.sequence());
  }
  if (a.dict() && b.dict()) return are_equal_dicts(runtime, *a.dict(), *b.dict());
  if (a.held().index() != b.held().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (const auto* space = a.get<Namespace*>()) return *space == *b.get<Namespace*>();
  if (const auto* function = a.get<FunctionPtr>()) return *function == *b.get<FunctionPtr>();
  if (const auto* generator = a.get<Generator*>()) return *generator == *b.get<Generator*>();
  return *a.get<LoopState*>() == *b.get<LoopState*>();
}

bool is_less(Runtime& runtime, const Value& a, const Value& b, const char* sign) {
  runtime.spend();
  if (a.is_undefined()) runtime.fail_undefined(a);
  if (b.is_undefined()) runtime.fail_undefined(b);
  if (a.integer() && b.integer()) return *a.integer() < *b.integer();
  if (a.number() && b.number()) return *a.number() < *b.number();
  // UTF-8 bytes sort in the same order as characters.
  if (a.string() && b.string()) {
    runtime.spend(std::min(a.string()->size(), b.string()->size()) / 64);
    return a.string()->bytes() < b.string()->bytes();
  }
  const Sequence* left = a.sequence();
  const Sequence* right = b.sequence();
  if (left && right && left->kind == right->kind && left->kind <= SequenceKind::tuple) {
    return is_less_sequence(runtime, *left, *right, sign);
  }
  runtime.fail("'", sign, "' not supported between instances of '", type_name(a), "' and '",
               type_name(b), "'");
}

bool is_at_most(Runtime& runtime, const Value& a, const Value& b, const char* sign) {
  if (a.number() && b.number() && !(a.integer() && b.integer())) return *a.number() <= *b.number();
  return !is_less(runtime, b, a, sign);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const MarkedText* text = container.string()) {
    if (!item.string()) {
      runtime.fail("'in <string>' requires string as left operand, not ", type_name(item));
    }
    const TextSearch search(runtime, text->bytes(), item.string()->bytes());
    return search.find(0) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    check_hashable(runtime, item);
    return find_member(runtime, *dict, item) != nullptr;
  }
  const Items items = items_of(runtime, container);
  return std::any_of(items->begin(), items->end(),
                     [&](const Value& each) { return are_equal(runtime, each, item); });
}

void check_hashable(Runtime& runtime, const Value& key) {
  runtime.spend();
  const Sequence* sequence = key.sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::tuple) {
    for (const Value& item : sequence->items) check_hashable(runtime, item);
    return;
  }
  const bool is_view = sequence != nullptr && sequence->kind != SequenceKind::range;
  if (is_view || key.dict()) runtime.fail("unhashable type: '", type_name(key), "'");
}

Value dict_of(Runtime& runtime, std::vector<std::pair<Value, Value>> members) {
  std::vector<std::pair<Value, Value>> distinct;
  for (auto& [key, value] : members) {
    check_hashable(runtime, key);
    const auto known = std::find_if(distinct.begin(), distinct.end(), [&](const auto& each) {
      return are_equal(runtime, each.first, key);
    });
    if (known != distinct.end()) {
      known->second = std::move(value);
    } else {
      distinct.emplace_back(std::move(key), std::move(value));
    }
  }
  return runtime.dict(std::move(distinct));
}

const Value* find_member(Runtime& runtime, const Dict& dict, const Value& key) {
  if (const MarkedText* text = key.string()) return find_member(runtime, dict, text->bytes());
  for (const auto& [each, value] : dict.members) {
    if (are_equal(runtime, each, key)) return &value;
  }
  return nullptr;
}

const Value* find_member(Runtime& runtime, const Dict& dict, std::string_view key) {
  runtime.spend(1 + dict.members.size() / 8);
  for (const auto& [each, value] : dict.members) {
    if (!each.string() || each.string()->size() != key.size()) continue;
    runtime.spend(key.size() / 64);
    if (each.string()->bytes() == key) return &value;
  }
  return nullptr;
}

}  // namespace fp8kv::jinja
