#include "jinja/values/value.h"

#include <algorithm>

#include "base/text.h"

namespace fp8kv::jinja {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

Value Value::text(MarkedText text) {
  return Value(String{std::make_shared<const MarkedText>(std::move(text)), false});
}

Value Value::text(std::string_view bytes) {
  return text(MarkedText(std::string(bytes), Origin::from_template));
}

Value Value::list(Values items, SequenceKind kind) {
  int nesting = 0;
  for (const Value& item : items) nesting = std::max(nesting, nesting_of(item));
  return Value(std::make_shared<const Sequence>(Sequence{kind, std::move(items), nesting + 1}));
}

Value Value::dict(std::vector<std::pair<Value, Value>> members) {
  int nesting = 0;
  for (const auto& [key, value] : members) {
    nesting = std::max({nesting, nesting_of(key), nesting_of(value)});
  }
  return Value(std::make_shared<const Dict>(Dict{std::move(members), nesting + 1}));
}

Value Value::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

std::optional<int64_t> Value::integer() const {
  if (const auto* whole = get<int64_t>()) return *whole;
  if (const auto* flag = get<bool>()) return *flag;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* real = get<double>()) return *real;
  if (const auto whole = integer()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::string type_name(const Value& value) {
  const auto of_sequence = [](const SequencePtr& sequence) -> std::string {
    switch (sequence->kind) {
      case SequenceKind::list:
        return "list";
      case SequenceKind::tuple:
        return "tuple";
      case SequenceKind::range:
        return "range";
      case SequenceKind::group:
        return "_GroupTuple";
      case SequenceKind::keys:
        return "dict_keys";
      case SequenceKind::values:
        return "dict_values";
      case SequenceKind::items:
        break;
    }
    return "dict_items";
  };
  using Name = std::string;
  return std::visit(
      Overloaded{[](const Undefined&) -> Name { return "Undefined"; },
                 [](None) -> Name { return "NoneType"; }, [](bool) -> Name { return "bool"; },
                 [](int64_t) -> Name { return "int"; }, [](double) -> Name { return "float"; },
                 [](const String& text) -> Name { return text.is_markup ? "Markup" : "str"; },
                 of_sequence, [](const DictPtr&) -> Name { return "dict"; },
                 [](Namespace*) -> Name { return "Namespace"; },
                 [](const FunctionPtr&) -> Name { return "function"; },
                 [](Generator*) -> Name { return "generator"; },
                 [](LoopState*) -> Name { return "LoopContext"; }},
      value.held());
}

std::string object_name(const Value& value) {
  return value.is_none() ? "'None'" : cat("'", type_name(value), " object'");
}

bool is_true(const Value& value) {
  return std::visit(
      Overloaded{[](const Undefined&) { return false; }, [](None) { return false; },
                 [](bool flag) { return flag; }, [](int64_t whole) { return whole != 0; },
                 [](double real) { return real != 0; },
                 [](const String& text) { return !text.text->empty(); },
                 [](const SequencePtr& sequence) { return !sequence->items.empty(); },
                 [](const DictPtr& dict) { return !dict->members.empty(); },
                 [](const auto&) { return true; }},
      value.held());
}

int nesting_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->nesting;
  if (const Dict* dict = value.dict()) return dict->nesting;
  if (const auto* generator = value.get<Generator*>()) return (*generator)->nesting;
  return 0;
}

}  // namespace fp8kv::jinja
