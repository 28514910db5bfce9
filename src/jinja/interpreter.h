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
  // `variables`: what the template is given, by name. REQUIRES both to outlive this.
  Interpreter(const Syntax& syntax, Runtime& runtime,
              const std::vector<std::pair<std::string, Value>>& variables);

  MarkedText run();

 private:
  // Names set in a block of the template; others are looked for in the scope around it.
  struct Scope {
    Scope* around = nullptr;
    std::vector<std::pair<int, Value>> variables;
    bool is_kept = false;  // a macro may ask for it later
  };
  // As long as one lives, there is one more scope, of which only macros keep a hold.
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

  // Statements.
  Flow run_block(const Block& block, Scope& scope);
  Flow run_statement(const Statement& statement, Scope& scope);
  Flow run_condition(const Statement& statement, Scope& scope);
  void run_loop(const Statement& statement, Scope& scope, const Value& over, int64_t depth);
  std::shared_ptr<const Values> items_to_loop(const Statement& statement, Scope& scope,
                                              const Value& over);
  void run_scope(const Statement& statement, Scope& scope);
  void run_call_block(const Statement& statement, Scope& scope);
  void define_macro(const Statement& statement, Scope& scope);
  // What `work` prints.
  template <typename Work>
  MarkedText printed(Work&& work);
  void print(const Value& value);
  void print(const MarkedText& text);

  // Variables.
  void set(Scope& scope, int symbol, Value value);
  void assign(const Target& target, Scope& scope, Value value);
  Value value_of_name(const Expression& name, const Scope& scope) const;
  const Value* find(int symbol, const Scope& scope) const;

  // Macros.
  Value macro_value(const MacroBody& macro, Scope& scope);
  Value call_macro(const MacroBody& macro, Scope& scope, Arguments arguments);
  void bind(const MacroBody& macro, Scope& scope, Arguments& arguments);

  // Expressions.
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
  // With `input` where the first filter of a chain has nothing before it.
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
