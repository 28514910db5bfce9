#include "jinja/values/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "jinja/values/percent_format.h"
#include "jinja/values/python_text.h"
#include "jinja/values/runtime.h"

namespace fp8kv::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void fail_types(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  if (a.is_undefined()) runtime.fail_undefined(a);
  if (b.is_undefined()) runtime.fail_undefined(b);
  if (op == Operator::add && (a.is_string() || a.sequence())) {
    runtime.fail("can only concatenate ", type_name(a), " (not \"", type_name(b), "\") to ",
                 type_name(a));
  }
  runtime.fail("unsupported operand types for ", kSigns[static_cast<size_t>(op)], ": '",
               type_name(a), "' and '", type_name(b), "'");
}

int64_t floor_of(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

double modulo_of(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value whole_power(Runtime& runtime, int64_t a, int64_t b) {
  if (b < 0) {
    if (a == 0) runtime.fail("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
  int64_t out = 1;
  for (; b > 0; --b) {
    if (a == 0 || a == 1) return Value(a);
    if (a == -1) return Value(b % 2 == 0 ? int64_t{1} : int64_t{-1});
    if (__builtin_mul_overflow(out, a, &out)) runtime.fail("a number is more than 64 bits hold");
  }
  return Value(out);
}

// Returns a remainder with the sign of `b`. For b = -1 it is always 0, also if the quotient exceeds
// 64 bits.
int64_t remainder_of(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value apply_whole(Runtime& runtime, Operator op, int64_t a, int64_t b) {
  const bool divides =
      op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && b == 0) runtime.fail("division by zero");
  int64_t out = 0;
  bool overflows = divides && b == -1 && a == INT64_MIN;
  switch (op) {
    case Operator::add:
      overflows = __builtin_add_overflow(a, b, &out);
      break;
    case Operator::subtract:
      overflows = __builtin_sub_overflow(a, b, &out);
      break;
    case Operator::multiply:
      overflows = __builtin_mul_overflow(a, b, &out);
      break;
    case Operator::divide:
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::floor_divide:
      if (!overflows) out = floor_of(a, b);
      break;
    case Operator::modulo:
      return Value(remainder_of(a, b));
    case Operator::power:
      return whole_power(runtime, a, b);
  }
  if (overflows) runtime.fail("a number is more than 64 bits hold");
  return Value(out);
}

Value apply_real(Runtime& runtime, Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return Value(a + b);
    case Operator::subtract:
      return Value(a - b);
    case Operator::multiply:
      return Value(a * b);
    case Operator::power:
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) runtime.fail("float division by zero");
  if (op == Operator::divide) return Value(a / b);
  if (op == Operator::modulo) return Value(modulo_of(a, b));
  return Value(std::floor(a / b));
}

Value add_strings(Runtime& runtime, const Value& a, const Value& b) {
  const bool markup = a.get<String>()->is_markup || b.get<String>()->is_markup;
  const Value left = markup ? escaped(runtime, a) : a;
  const Value right = markup ? escaped(runtime, b) : b;
  runtime.spend_bytes(left.string()->size() + right.string()->size());
  MarkedText out = *left.string();
  out.append(*right.string());
  return Value(String{std::make_shared<const MarkedText>(std::move(out)), markup});
}

Value add_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  Values items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return runtime.list(std::move(items), a.kind);
}

// Returns nothing if Python cannot repeat this value.
std::optional<Value> repeated(Runtime& runtime, const Value& what, const Value& times) {
  if (!times.integer()) return std::nullopt;
  const auto count = static_cast<uint64_t>(std::max<int64_t>(*times.integer(), 0));
  if (const MarkedText* text = what.string()) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(text->size(), count, &bytes)) bytes = SIZE_MAX;
    runtime.spend_bytes(bytes);
    MarkedText out;
    for (uint64_t i = 0; i < count && !text->empty(); ++i) out.append(*text);
    return Value::text(std::move(out));
  }
  const Sequence* sequence = what.sequence();
  if (sequence == nullptr || sequence->kind > SequenceKind::tuple) return std::nullopt;
  uint64_t size = 0;
  if (__builtin_mul_overflow(uint64_t{sequence->items.size()}, count, &size)) size = UINT64_MAX;
  runtime.spend_items(size);
  Values items;
  for (uint64_t i = 0; i < count && !sequence->items.empty(); ++i) {
    items.insert(items.end(), sequence->items.begin(), sequence->items.end());
  }
  return runtime.list(std::move(items), sequence->kind);
}

std::optional<Value> applied_to_sequences(Runtime& runtime, Operator op, const Value& a,
                                          const Value& b) {
  if (op == Operator::multiply) {
    auto out = repeated(runtime, a, b);
    return out ? out : repeated(runtime, b, a);
  }
  if (op == Operator::modulo && a.is_string() && !b.is_undefined()) {
    return percent_formatted(runtime, *a.string(), b);
  }
  if (op != Operator::add) return std::nullopt;
  if (a.is_string() && b.is_string()) return add_strings(runtime, a, b);
  const Sequence* left = a.sequence();
  const Sequence* right = b.sequence();
  const bool fits = left && right && left->kind == right->kind && left->kind <= SequenceKind::tuple;
  return fits ? std::optional(add_sequences(runtime, *left, *right)) : std::nullopt;
}

}  // namespace

Value apply(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  runtime.spend();
  if (a.integer() && b.integer()) return apply_whole(runtime, op, *a.integer(), *b.integer());
  if (a.number() && b.number()) return apply_real(runtime, op, *a.number(), *b.number());
  if (auto out = applied_to_sequences(runtime, op, a, b)) return *std::move(out);
  fail_types(runtime, op, a, b);
}

Value negated(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (value.integer()) return apply_whole(runtime, Operator::subtract, 0, *value.integer());
  if (value.number()) return Value(-*value.number());
  runtime.fail("bad operand type for unary -: '", type_name(value), "'");
}

Value unchanged(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (value.integer()) return Value(*value.integer());
  if (value.number()) return value;
  runtime.fail("bad operand type for unary +: '", type_name(value), "'");
}

Value escaped(Runtime& runtime, const Value& value) {
  if (value.is_string() && value.get<String>()->is_markup) return value;
  const std::shared_ptr<const MarkedText> text = python_str(runtime, value);
  runtime.spend_bytes(text->size());
  MarkedText out;
  text->for_each_run(0, text->size(), [&](std::string_view bytes, Origin origin) {
    std::string made;
    for (const char c : bytes) {
      const size_t at = std::string_view("&<>'\"").find(c);
      constexpr std::string_view kNames[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
      at == std::string_view::npos ? made.append(1, c) : made.append(kNames[at]);
    }
    out.append(made, origin);
  });
  return Value(String{std::make_shared<const MarkedText>(std::move(out)), true});
}

}  // namespace fp8kv::jinja
