// Runs a parsed template.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/syntax.h"
#include "jinja/values/loop_state.h"
#include "jinja/values/runtime.h"

namespace fp8kv::jinja {

class Interpreter {
 public:
  // `variables`: the template's input, by name. REQUIRES `syntax` and `runtime` to outlive this
  // object.
  Interpreter(const Syntax& syntax, Runtime& runtime,
              const std::vector<std::pair<std::string, Value>>& variables);

  MarkedText run();

 private:
  // The names set in one block of the template. Other names are searched in the scope around it.
  struct Scope {
    Scope* around = nullptr;
    std::vector<std::pair<int, Value>> variables;
    bool is_kept = false;  // a macro may use it later
  };
  // Adds a scope while it lives. The scope is recycled afterwards unless a macro keeps it.
  class Within {
   public:
    Within(Interpreter& interpreter, Scope* around);
    ~Within();
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;
    Scope& scope() { return *scope_; }

   private:
    Interpreter& interpreter_;
    Scope* scope_;
  };

  enum class Flow { on, leave_loop, next_round };

  // Runs statements.
  Flow run_block(const Block& block, Scope& scope);
  Flow run_statement(const Statement& statement, Scope& scope);
  Flow run_condition(const Statement& statement, Scope& scope);
  void run_loop(const Statement& statement, Scope& scope, const Value& over, int64_t depth);
  std::shared_ptr<const Values> items_to_loop(const Statement& statement, Scope& scope,
                                              const Value& over);
  void run_scope(const Statement& statement, Scope& scope);
  void run_call_block(const Statement& statement, Scope& scope);
  void define_macro(const Statement& statement, Scope& scope);
  // Returns the text that `work` prints.
  template <typename Work>
  MarkedText printed(Work&& work);
  void print(const Value& value);
  void print(const MarkedText& text);

  // Reads and writes variables.
  void set(Scope& scope, int symbol, Value value);
  void assign(const Target& target, Scope& scope, Value value);
  Value value_of_name(const Expression& name, const Scope& scope) const;
  const Value* find(int symbol, const Scope& scope) const;

  // Defines and calls macros.
  Value macro_value(const MacroBody& macro, Scope& scope);
  Value call_macro(const MacroBody& macro, Scope& scope, Arguments arguments);
  void bind(const MacroBody& macro, Scope& scope, Arguments& arguments);

  // Evaluates expressions.
  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_kind(const Expression& expression, Scope& scope);
  Values evaluate_all(const std::vector<ExpressionPtr>& parts, Scope& scope);
  Value evaluate_dict(const Expression& expression, Scope& scope);
  Value evaluate_slice(const Expression& expression, Scope& scope);
  Value evaluate_call(const Expression& expression, Scope& scope);
  Value evaluate_comparison(const Expression& expression, Scope& scope);
  bool compare(Comparison comparison, const Value& a, const Value& b);
  Value evaluate_concatenation(const Expression& expression, Scope& scope);
  Value evaluate_conditional(const Expression& expression, Scope& scope);
  Arguments evaluate_arguments(const CallArguments& arguments, Scope& scope);
  Value call_value(const Value& function, Arguments arguments);
  // `input`: the value for a chain whose first filter has none before it.
  Value apply_filters(const Expression& chain, const Value& input, Scope& scope);

  const Syntax& syntax_;
  Runtime& runtime_;
  std::vector<Value> given_;    // by symbol
  std::vector<bool> is_given_;  // by symbol
  int loop_symbol_ = -1;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_;
  std::deque<LoopState> loops_;
  MarkedText* out_ = nullptr;
};

}  // namespace fp8kv::jinja
