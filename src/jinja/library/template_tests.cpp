#include "jinja/library/template_tests.h"

#include <array>
#include <cmath>

#include "jinja/values/compare.h"
#include "jinja/values/iteration.h"
#include "jinja/values/operators.h"
#include "jinja/values/python_text.h"
#include "jinja/values/text_tools.h"

namespace fp8kv::jinja {
namespace {

Value is_defined(Call& call) {
  return Value(!call.self.is_undefined());
}
Value is_undefined(Call& call) {
  return Value(call.self.is_undefined());
}
Value is_none(Call& call) {
  return Value(call.self.is_none());
}
Value is_boolean(Call& call) {
  return Value(call.self.get<bool>() != nullptr);
}
Value is_true_test(Call& call) {
  return Value(call.self.get<bool>() && *call.self.get<bool>());
}
Value is_false_test(Call& call) {
  return Value(call.self.get<bool>() && !*call.self.get<bool>());
}
Value is_integer(Call& call) {
  return Value(call.self.get<int64_t>() != nullptr);
}
Value is_float(Call& call) {
  return Value(call.self.get<double>() != nullptr);
}
Value is_number(Call& call) {
  return Value(call.self.number().has_value());
}
Value is_string(Call& call) {
  return Value(call.self.is_string());
}
Value is_mapping(Call& call) {
  return Value(call.self.dict() != nullptr);
}
// Whether the value has a length and can be subscripted.
Value is_sequence(Call& call) {
  const Sequence* sequence = call.self.sequence();
  return Value(call.self.is_string() || call.self.dict() || call.self.is_undefined() ||
               (sequence && sequence->kind <= SequenceKind::group));
}
Value is_iterable_test(Call& call) {
  return Value(is_iterable(call.self));
}
Value is_callable(Call& call) {
  return Value(call.self.get<FunctionPtr>() != nullptr || call.self.get<LoopState*>() != nullptr ||
               call.self.is_undefined());
}
Value is_escaped(Call& call) {
  return Value(call.self.is_string() && call.self.get<String>()->is_markup);
}

int64_t remainder(Call& call, int64_t by) {
  const Value rest = apply(call.runtime, Operator::modulo, call.self, Value(by));
  if (!rest.number()) call.runtime.fail("not a number");
  return static_cast<int64_t>(*rest.number() == std::floor(*rest.number()) ? *rest.number() : -1);
}
Value is_odd(Call& call) {
  return Value(remainder(call, 2) == 1);
}
Value is_even(Call& call) {
  return Value(remainder(call, 2) == 0);
}
Value is_divisible(Call& call) {
  const Value rest = apply(call.runtime, Operator::modulo, call.self, *call.args[0]);
  return Value(are_equal(call.runtime, rest, Value(int64_t{0})));
}

bool is_in_case(Call& call, bool lower_case) {
  const auto text = python_str(call.runtime, call.self);
  const MarkedText low = lower(call.runtime, *text);
  const MarkedText high = upper(call.runtime, *text);
  return (lower_case ? low : high).bytes() == text->bytes() &&
         (lower_case ? high : low).bytes() != text->bytes();
}
Value is_lower(Call& call) {
  return Value(is_in_case(call, true));
}
Value is_upper(Call& call) {
  return Value(is_in_case(call, false));
}

Value is_equal(Call& call) {
  return Value(are_equal(call.runtime, call.self, *call.args[0]));
}
Value is_unequal(Call& call) {
  return Value(!are_equal(call.runtime, call.self, *call.args[0]));
}
Value is_less_test(Call& call) {
  return Value(is_less(call.runtime, call.self, *call.args[0], "<"));
}
Value is_greater(Call& call) {
  return Value(is_less(call.runtime, *call.args[0], call.self, ">"));
}
Value is_at_most_test(Call& call) {
  return Value(is_at_most(call.runtime, call.self, *call.args[0], "<="));
}
Value is_at_least_test(Call& call) {
  return Value(is_at_most(call.runtime, *call.args[0], call.self, ">="));
}
Value is_in(Call& call) {
  return Value(contains(call.runtime, *call.args[0], call.self));
}
// Only supports values that exist once in Python: none, true and false.
Value is_same(Call& call) {
  const Value& other = *call.args[0];
  const auto is_single = [](const Value& value) { return value.is_none() || value.get<bool>(); };
  if (!is_single(call.self) && !is_single(other)) {
    call.runtime.fail("sameas is only supported with none, true and false");
  }
  return Value(call.self.held().index() == other.held().index() &&
               are_equal(call.runtime, call.self, other));
}
// Sorted by name.
constexpr std::array<BuiltinRow, 39> kRows = {{
    {"!=", "other", is_unequal},
    {"<", "other", is_less_test},
    {"<=", "other", is_at_most_test},
    {"==", "other", is_equal},
    {">", "other", is_greater},
    {">=", "other", is_at_least_test},
    {"boolean", "", is_boolean},
    {"callable", "", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", is_equal},
    {"equalto", "other", is_equal},
    {"escaped", "", is_escaped},
    {"even", "", is_even},
    {"false", "", is_false_test},
    {"filter", "*", nullptr},
    {"float", "", is_float},
    {"ge", "other", is_at_least_test},
    {"greaterthan", "other", is_greater},
    {"gt", "other", is_greater},
    {"in", "seq", is_in},
    {"integer", "", is_integer},
    {"iterable", "", is_iterable_test},
    {"le", "other", is_at_most_test},
    {"lessthan", "other", is_less_test},
    {"lower", "", is_lower},
    {"lt", "other", is_less_test},
    {"mapping", "", is_mapping},
    {"ne", "other", is_unequal},
    {"none", "", is_none},
    {"number", "", is_number},
    {"odd", "", is_odd},
    {"sameas", "other", is_same},
    {"sequence", "", is_sequence},
    {"string", "", is_string},
    {"test", "*", nullptr},
    {"true", "", is_true_test},
    {"undefined", "", is_undefined},
    {"upper", "", is_upper},
}};

}  // namespace

const BuiltinRow* find_test(std::string_view name) {
  return find_row(kRows, name);
}

bool passes_test(Runtime& runtime, std::string_view name, const Value& value,
                 const Arguments& arguments) {
  const BuiltinRow* row = find_test(name);
  if (row == nullptr) runtime.fail("no test named '", name, "'");
  return is_true(call_row(runtime, *row, "test", value, arguments));
}

}  // namespace fp8kv::jinja
