// Runs statements, variables and macros. Expressions are in evaluate.cpp.
#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/library/globals.h"
#include "jinja/values/iteration.h"
#include "jinja/values/python_text.h"

namespace fp8kv::jinja {

Interpreter::Interpreter(const Syntax& syntax, Runtime& runtime,
                         const std::vector<std::pair<std::string, Value>>& variables)
    : syntax_(syntax), runtime_(runtime) {
  given_.resize(syntax.names.size());
  is_given_.resize(syntax.names.size());
  for (size_t i = 0; i < syntax.names.size(); ++i) {
    const std::string& name = syntax.names[i];
    if (name == "loop") loop_symbol_ = static_cast<int>(i);
    const auto variable = std::find_if(variables.begin(), variables.end(),
                                       [&](const auto& each) { return each.first == name; });
    if (variable != variables.end()) {
      given_[i] = variable->second;
      is_given_[i] = true;
    } else if (auto function = global_of(runtime, name)) {
      given_[i] = *std::move(function);
      is_given_[i] = true;
    }
  }
}

Interpreter::Within::Within(Interpreter& interpreter, Scope* around) : interpreter_(interpreter) {
  if (interpreter.free_.empty()) {
    scope_ = &interpreter.scopes_.emplace_back();
  } else {
    scope_ = interpreter.free_.back();
    interpreter.free_.pop_back();
  }
  scope_->around = around;
}

Interpreter::Within::~Within() {
  if (scope_->is_kept) return;
  scope_->variables.clear();
  interpreter_.free_.push_back(scope_);
}

MarkedText Interpreter::run() {
  return printed([&] {
    Within within(*this, nullptr);
    run_block(syntax_.body, within.scope());
  });
}

template <typename Work>
MarkedText Interpreter::printed(Work&& work) {
  MarkedText made;
  MarkedText* before = std::exchange(out_, &made);
  work();
  out_ = before;
  return made;
}

void Interpreter::print(const MarkedText& text) {
  runtime_.spend(1 + text.size() / 16);
  runtime_.check_size(out_->size() + text.size());
  out_->append(text);
}

void Interpreter::print(const Value& value) {
  print(*python_str(runtime_, value));
}

Interpreter::Flow Interpreter::run_block(const Block& block, Scope& scope) {
  for (const Statement& statement : block) {
    if (const Flow flow = run_statement(statement, scope); flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement, Scope& scope) {
  const Runtime::Level level(runtime_);
  runtime_.spend();
  runtime_.at_line(statement.line);
  switch (statement.kind) {
    case StatementKind::data:
      print(statement.data);
      break;
    case StatementKind::print:
      for (const ExpressionPtr& value : statement.values) print(evaluate(*value, scope));
      break;
    case StatementKind::assign:
      assign(statement.targets[0], scope, evaluate(*statement.values[0], scope));
      break;
    case StatementKind::assign_block:
    case StatementKind::filter_block: {
      MarkedText text = printed([&] {
        Within within(*this, &scope);
        run_block(statement.body, within.scope());
      });
      Value value = Value::text(std::move(text));
      if (!statement.values.empty()) value = apply_filters(*statement.values[0], value, scope);
      if (statement.targets.empty()) {
        print(value);
      } else {
        assign(statement.targets[0], scope, std::move(value));
      }
      break;
    }
    case StatementKind::condition:
      return run_condition(statement, scope);
    case StatementKind::loop:
      run_loop(statement, scope, evaluate(*statement.values[0], scope), 1);
      break;
    case StatementKind::macro:
      define_macro(statement, scope);
      break;
    case StatementKind::call_block:
      run_call_block(statement, scope);
      break;
    case StatementKind::scope:
      run_scope(statement, scope);
      break;
    case StatementKind::break_loop:
      return Flow::leave_loop;
    case StatementKind::continue_loop:
      return Flow::next_round;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::run_condition(const Statement& statement, Scope& scope) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition && !is_true(evaluate(*branch.condition, scope))) continue;
    return run_block(branch.body, scope);
  }
  return Flow::on;
}

std::shared_ptr<const Values> Interpreter::items_to_loop(const Statement& statement, Scope& scope,
                                                         const Value& over) {
  Items items = items_of(runtime_, over);
  if (!statement.condition) return items;
  auto kept = std::make_shared<Values>();
  for (const Value& item : *items) {
    Within within(*this, &scope);
    assign(statement.targets[0], within.scope(), item);
    if (is_true(evaluate(*statement.condition, within.scope()))) kept->push_back(item);
  }
  return kept;
}

void Interpreter::run_loop(const Statement& statement, Scope& scope, const Value& over,
                           int64_t depth) {
  LoopState& loop = loops_.emplace_back(LoopState{items_to_loop(statement, scope, over)});
  loop.depth = depth;
  if (statement.recursive) {
    Scope* around = &scope;
    // The recursion uses this scope later, so it has to stay alive, as for a macro.
    for (Scope* each = around; each != nullptr; each = each->around) each->is_kept = true;
    loop.recurse = [this, &statement, around, depth](const Value& inner) {
      const Runtime::Level level(runtime_);
      return Value::text(printed([&] { run_loop(statement, *around, inner, depth + 1); }));
    };
  }
  for (; loop.index < loop.items->size(); ++loop.index) {
    runtime_.spend();
    Within within(*this, &scope);
    if (loop_symbol_ >= 0) set(within.scope(), loop_symbol_, Value(&loop));
    assign(statement.targets[0], within.scope(), (*loop.items)[loop.index]);
    if (run_block(statement.body, within.scope()) == Flow::leave_loop) break;
  }
  if (!loop.items->empty() || statement.otherwise.empty()) return;
  Within within(*this, &scope);
  run_block(statement.otherwise, within.scope());
}

void Interpreter::run_scope(const Statement& statement, Scope& scope) {
  Within within(*this, &scope);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    assign(statement.targets[i], within.scope(), evaluate(*statement.values[i], scope));
  }
  run_block(statement.body, within.scope());
}

void Interpreter::set(Scope& scope, int symbol, Value value) {
  for (auto& [each, held] : scope.variables) {
    if (each != symbol) continue;
    held = std::move(value);
    return;
  }
  scope.variables.emplace_back(symbol, std::move(value));
}

void Interpreter::assign(const Target& target, Scope& scope, Value value) {
  if (target.is_tuple) {
    const Items items = items_of(runtime_, value);
    if (items->size() != target.parts.size()) {
      runtime_.fail(items->size() < target.parts.size() ? "not enough" : "too many",
                    " values to unpack, expected ", target.parts.size(), ", got ", items->size());
    }
    for (size_t i = 0; i < items->size(); ++i) assign(target.parts[i], scope, (*items)[i]);
    return;
  }
  if (target.member.empty()) return set(scope, target.symbol, std::move(value));
  const Value* space = find(target.symbol, scope);
  if (space == nullptr || !space->get<Namespace*>()) {
    runtime_.fail("cannot assign attribute '", target.member, "' on '",
                  syntax_.names[static_cast<size_t>(target.symbol)], "', which is no namespace");
  }
  set_member(runtime_, **space->get<Namespace*>(), target.member, std::move(value));
}

const Value* Interpreter::find(int symbol, const Scope& scope) const {
  for (const Scope* each = &scope; each != nullptr; each = each->around) {
    for (const auto& [name, value] : each->variables) {
      if (name == symbol) return &value;
    }
  }
  const auto index = static_cast<size_t>(symbol);
  return is_given_[index] ? &given_[index] : nullptr;
}

Value Interpreter::value_of_name(const Expression& name, const Scope& scope) const {
  const Value* found = find(name.symbol, scope);
  return found ? *found : Value::undefined(cat("'", name.text, "' is undefined"));
}

Value Interpreter::macro_value(const MacroBody& macro, Scope& scope) {
  for (Scope* each = &scope; each != nullptr; each = each->around) each->is_kept = true;
  const auto call = [this, &macro, scope = &scope](Arguments arguments) {
    return call_macro(macro, *scope, std::move(arguments));
  };
  return Value(std::make_shared<const Function>(Function{macro.name, call}));
}

void Interpreter::define_macro(const Statement& statement, Scope& scope) {
  set(scope, statement.targets[0].symbol, macro_value(*statement.macro, scope));
}

void Interpreter::run_call_block(const Statement& statement, Scope& scope) {
  const Expression& call = *statement.values[0];
  const Value function = evaluate(*call.parts[0], scope);
  Arguments arguments = evaluate_arguments(call.arguments, scope);
  arguments.named.emplace_back("caller", macro_value(*statement.macro, scope));
  print(call_value(function, std::move(arguments)));
}

Value Interpreter::call_macro(const MacroBody& macro, Scope& scope, Arguments arguments) {
  const Runtime::Level level(runtime_);
  const int line = runtime_.line();
  Within within(*this, &scope);
  bind(macro, within.scope(), arguments);
  Value made = runtime_.text(printed([&] { run_block(macro.body, within.scope()); }));
  runtime_.at_line(line);
  return made;
}

void Interpreter::bind(const MacroBody& macro, Scope& scope, Arguments& arguments) {
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    const auto at = std::find_if(arguments.named.begin(), arguments.named.end(),
                                 [&](const auto& each) { return each.first == name; });
    if (at == arguments.named.end()) return std::nullopt;
    Value value = std::move(at->second);
    arguments.named.erase(at);
    return value;
  };
  const auto symbol_of = [&](std::string_view name) {
    const auto at = std::find(syntax_.names.begin(), syntax_.names.end(), name);
    return static_cast<int>(at - syntax_.names.begin());
  };
  const size_t places = macro.parameters.size();
  for (size_t i = 0; i < places; ++i) {
    const Parameter& parameter = macro.parameters[i];
    std::optional<Value> value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else {
      value = take_named(parameter.name);
    }
    if (!value && parameter.otherwise) value = evaluate(*parameter.otherwise, scope);
    if (!value) value = Value::undefined(cat("parameter '", parameter.name, "' was not provided"));
    set(scope, parameter.symbol, *std::move(value));
  }
  if (macro.uses_caller) {
    const auto caller = take_named("caller");
    set(scope, symbol_of("caller"), caller ? *caller : Value::undefined("No caller defined"));
  }
  if (macro.uses_kwargs) {
    std::vector<std::pair<Value, Value>> rest;
    for (auto& [name, value] : arguments.named) rest.emplace_back(Value::text(name), value);
    set(scope, symbol_of("kwargs"), runtime_.dict(std::move(rest)));
  } else if (!arguments.named.empty()) {
    runtime_.fail("macro '", macro.name, "' takes no keyword argument '", arguments.named[0].first,
                  "'");
  }
  if (macro.uses_varargs) {
    const size_t used = std::min(places, arguments.positional.size());
    Values rest(arguments.positional.begin() + static_cast<ptrdiff_t>(used),
                arguments.positional.end());
    set(scope, symbol_of("varargs"), runtime_.list(std::move(rest), SequenceKind::tuple));
  } else if (arguments.positional.size() > places) {
    runtime_.fail("macro '", macro.name, "' takes not more than ", count_of(places, "argument"));
  }
}

}  // namespace fp8kv::jinja
