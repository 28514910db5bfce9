// Parses expressions with Jinja's precedences.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "jinja/syntax.h"
#include "jinja/token_stream.h"

namespace fp8kv::jinja {

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, Syntax& syntax) : tokens_(tokens), syntax_(syntax) {}

  ExpressionPtr expression(bool with_condition = true);
  // Parses one expression, or several separated by commas as a tuple. `end`: a name that ends it,
  // like the end of the tag.
  ExpressionPtr tuple(bool with_condition, std::string_view end = "");
  // Parses a chain of filters, as in {% filter upper|trim %}. Returns nullptr if there is none.
  ExpressionPtr filters(bool begins_with_name);
  // Parses the target of an assignment.
  Target target(bool with_namespace, std::string_view end = "");
  CallArguments call_arguments();

  int symbol(const std::string& name);

  // An unknown filter or test inside a condition, or in the code that depends on it, is an error
  // only when it is reached. Elsewhere it is an error before anything is rendered.
  bool forgives_unknown() const { return forgives_; }
  void forgive_unknown(bool forgives) { forgives_ = forgives; }
  void check_known() const;

  // The implicit names of a macro (varargs, kwargs, caller) that were read since the last call.
  struct Implicit {
    bool varargs = false;
    bool kwargs = false;
    bool caller = false;
  };
  Implicit take_implicit();
  void add_implicit(const Implicit& more);

 private:
  using Kind = ExpressionKind;
  static constexpr int kHighest = 200;  // levels of nested expressions

  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr constant_or_name();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr filters_and_tests(ExpressionPtr value);
  ExpressionPtr dot(ExpressionPtr object);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr call(ExpressionPtr function);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  std::string dotted_name();
  Target single_target(bool with_namespace);
  bool at_tuple_end(std::string_view end) const;

  Expression node(ExpressionKind kind) const;
  // Takes `parts`. Throws if the tree grows too high.
  ExpressionPtr finished(Expression made) const;
  ExpressionPtr joined(ExpressionKind kind, int line, ExpressionPtr a, ExpressionPtr b) const;
  void note_unknown(bool known, const char* what, const std::string& name, int line);
  void add_literal(const std::string& text);

  TokenStream& tokens_;
  Syntax& syntax_;
  std::unordered_map<std::string, int> symbols_;
  bool forgives_ = false;
  struct Unknown {
    int line;
    std::string what;
  };
  std::vector<Unknown> unknown_;
  Implicit implicit_;
  int depth_ = 0;
};

}  // namespace fp8kv::jinja
