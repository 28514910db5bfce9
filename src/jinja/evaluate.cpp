// Evaluates expressions.
#include <utility>

#include "jinja/interpreter.h"
#include "jinja/library/access.h"
#include "jinja/library/filters.h"
#include "jinja/library/methods.h"
#include "jinja/library/template_tests.h"
#include "jinja/values/compare.h"
#include "jinja/values/iteration.h"
#include "jinja/values/operators.h"
#include "jinja/values/python_text.h"

namespace fp8kv::jinja {

Value Interpreter::evaluate(const Expression& expression, Scope& scope) {
  runtime_.spend();
  runtime_.at_line(expression.line);
  if (expression.kind == ExpressionKind::constant) return expression.constant;
  if (expression.kind == ExpressionKind::name) return value_of_name(expression, scope);
  const Runtime::Level level(runtime_);
  return evaluate_kind(expression, scope);
}

Value Interpreter::evaluate_kind(const Expression& expression, Scope& scope) {
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i], scope); };
  const auto at_own_line = [&](Value value) {
    runtime_.at_line(expression.line);
    return value;
  };
  switch (expression.kind) {
    case ExpressionKind::list:
      return runtime_.list(evaluate_all(expression.parts, scope));
    case ExpressionKind::tuple:
      return runtime_.list(evaluate_all(expression.parts, scope), SequenceKind::tuple);
    case ExpressionKind::dict:
      return evaluate_dict(expression, scope);
    case ExpressionKind::attribute:
      return attribute_of(runtime_, at_own_line(part(0)), expression.text);
    case ExpressionKind::item: {
      const Value object = part(0);
      return item_of(runtime_, object, at_own_line(part(1)));
    }
    case ExpressionKind::slice:
      return evaluate_slice(expression, scope);
    case ExpressionKind::call:
      return evaluate_call(expression, scope);
    case ExpressionKind::filter:
      return apply_filters(expression, Value(), scope);
    case ExpressionKind::test: {
      const Value asked = part(0);
      const Arguments arguments = evaluate_arguments(expression.arguments, scope);
      runtime_.at_line(expression.line);
      return Value(passes_test(runtime_, expression.text, asked, arguments));
    }
    case ExpressionKind::negative:
      return negated(runtime_, part(0));
    case ExpressionKind::positive:
      return unchanged(runtime_, part(0));
    case ExpressionKind::logical_not:
      return Value(!is_true(part(0)));
    case ExpressionKind::logical_and: {
      Value left = part(0);
      return is_true(left) ? part(1) : left;
    }
    case ExpressionKind::logical_or: {
      Value left = part(0);
      return is_true(left) ? left : part(1);
    }
    case ExpressionKind::comparison:
      return evaluate_comparison(expression, scope);
    case ExpressionKind::arithmetic: {
      const Value left = part(0);
      return apply(runtime_, expression.op, left, at_own_line(part(1)));
    }
    case ExpressionKind::concatenation:
      return evaluate_concatenation(expression, scope);
    case ExpressionKind::conditional:
      return evaluate_conditional(expression, scope);
    case ExpressionKind::constant:
    case ExpressionKind::name:
      break;
  }
  FP8KV_ASSERT(false);
}

Values Interpreter::evaluate_all(const std::vector<ExpressionPtr>& parts, Scope& scope) {
  Values values;
  for (const ExpressionPtr& part : parts) values.push_back(evaluate(*part, scope));
  return values;
}

Value Interpreter::evaluate_dict(const Expression& expression, Scope& scope) {
  std::vector<std::pair<Value, Value>> members;
  for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    Value key = evaluate(*expression.parts[i], scope);
    members.emplace_back(std::move(key), evaluate(*expression.parts[i + 1], scope));
  }
  return dict_of(runtime_, std::move(members));
}

Value Interpreter::evaluate_slice(const Expression& expression, Scope& scope) {
  const auto bound = [&](size_t i) {
    return expression.parts[i] ? evaluate(*expression.parts[i], scope) : Value();
  };
  const Value object = evaluate(*expression.parts[0], scope);
  const Value begin = bound(1);
  const Value end = bound(2);
  return slice_of(runtime_, object, {begin, end, bound(3)});
}

// Looks up a method and calls it at once, because templates hardly ever use a method as a value.
Value Interpreter::evaluate_call(const Expression& expression, Scope& scope) {
  const Expression& callee = *expression.parts[0];
  if (callee.kind != ExpressionKind::attribute) {
    const Value function = evaluate(callee, scope);
    Arguments arguments = evaluate_arguments(expression.arguments, scope);
    runtime_.at_line(expression.line);
    return call_value(function, std::move(arguments));
  }
  const Value object = evaluate(*callee.parts[0], scope);
  const std::optional<Method> method = find_method(object, callee.text);
  if (!method) {
    const Value function = attribute_of(runtime_, object, callee.text);
    Arguments arguments = evaluate_arguments(expression.arguments, scope);
    runtime_.at_line(expression.line);
    return call_value(function, std::move(arguments));
  }
  const Arguments arguments = evaluate_arguments(expression.arguments, scope);
  runtime_.at_line(expression.line);
  return call_method(runtime_, *method, object, arguments);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, Scope& scope) {
  Arguments out;
  out.positional = evaluate_all(arguments.positional, scope);
  for (const auto& [name, value] : arguments.named) {
    out.named.emplace_back(name, evaluate(*value, scope));
  }
  if (arguments.list) {
    const Items items = items_of(runtime_, evaluate(*arguments.list, scope));
    runtime_.spend(items->size());
    out.positional.insert(out.positional.end(), items->begin(), items->end());
  }
  if (arguments.members) {
    const Value members = evaluate(*arguments.members, scope);
    if (!members.dict()) runtime_.fail("what stands behind ** is no dict");
    for (const auto& [key, value] : members.dict()->members) {
      if (!key.string()) runtime_.fail("keywords must be strings");
      out.named.emplace_back(key.string()->bytes(), value);
    }
  }
  return out;
}

Value Interpreter::call_value(const Value& function, Arguments arguments) {
  if (function.is_undefined()) runtime_.fail_undefined(function);
  if (const auto* loop = function.get<LoopState*>()) {
    if (!(*loop)->recurse) runtime_.fail("the loop must be marked 'recursive' to be called");
    if (arguments.positional.size() != 1 || !arguments.named.empty()) {
      runtime_.fail("loop() takes one argument");
    }
    return (*loop)->recurse(arguments.positional[0]);
  }
  const auto* callable = function.get<FunctionPtr>();
  if (callable == nullptr) runtime_.fail("'", type_name(function), "' object is not callable");
  const FunctionPtr held = *callable;
  return held->call(std::move(arguments));
}

Value Interpreter::apply_filters(const Expression& chain, const Value& input, Scope& scope) {
  const auto before = [&] {
    if (chain.parts.empty()) return input;
    const Expression& part = *chain.parts[0];
    const bool in_block = part.kind == ExpressionKind::filter;
    return in_block ? apply_filters(part, input, scope) : evaluate(part, scope);
  };
  const Runtime::Level level(runtime_);
  const Value value = before();
  const Arguments arguments = evaluate_arguments(chain.arguments, scope);
  runtime_.at_line(chain.line);
  return filtered(runtime_, chain.text, value, arguments);
}

bool Interpreter::compare(Comparison comparison, const Value& a, const Value& b) {
  switch (comparison) {
    case Comparison::equal:
      return are_equal(runtime_, a, b);
    case Comparison::unequal:
      return !are_equal(runtime_, a, b);
    case Comparison::less:
      return is_less(runtime_, a, b, "<");
    case Comparison::at_most:
      return is_at_most(runtime_, a, b, "<=");
    case Comparison::greater:
      return is_less(runtime_, b, a, ">");
    case Comparison::at_least:
      return is_at_most(runtime_, b, a, ">=");
    case Comparison::in:
      return contains(runtime_, b, a);
    case Comparison::not_in:
      return !contains(runtime_, b, a);
  }
  FP8KV_ASSERT(false);
}

Value Interpreter::evaluate_comparison(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.parts[0], scope);
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1], scope);
    runtime_.at_line(expression.line);
    if (!compare(expression.comparisons[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluate_concatenation(const Expression& expression, Scope& scope) {
  MarkedText out;
  for (const ExpressionPtr& part : expression.parts) {
    const auto text = python_str(runtime_, evaluate(*part, scope));
    runtime_.check_size(out.size() + text->size());
    out.append(*text);
  }
  return runtime_.text(std::move(out));
}

Value Interpreter::evaluate_conditional(const Expression& expression, Scope& scope) {
  if (is_true(evaluate(*expression.parts[0], scope))) {
    return evaluate(*expression.parts[1], scope);
  }
  if (expression.parts[2]) return evaluate(*expression.parts[2], scope);
  return Value::undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

}  // namespace fp8kv::jinja
