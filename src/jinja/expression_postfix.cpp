// Parses the postfix parts of an expression (members, subscripts, calls, filters and tests), and
// targets of assignments.
#include <algorithm>
#include <iterator>

#include "jinja/expression_parser.h"
#include "jinja/library/filters.h"
#include "jinja/library/template_tests.h"

namespace fp8kv::jinja {

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  while (true) {
    if (tokens_.is_sign(".")) {
      value = dot(std::move(value));
    } else if (tokens_.is_sign("[")) {
      value = subscript(std::move(value));
    } else if (tokens_.is_sign("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr value) {
  while (true) {
    if (tokens_.is_sign("|")) {
      tokens_.take();
      value = filter(std::move(value));
    } else if (tokens_.is_name("is")) {
      value = test(std::move(value));
    } else if (tokens_.is_sign("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::dot(ExpressionPtr object) {
  Expression made = node(Kind::attribute);
  tokens_.take();
  made.parts.push_back(std::move(object));
  if (tokens_.is(TokenKind::integer)) {
    made.kind = Kind::item;
    Expression index = node(Kind::constant);
    index.constant = Value(tokens_.take().whole);
    made.parts.push_back(finished(std::move(index)));
  } else {
    made.text = tokens_.expect_any_name();
  }
  return finished(std::move(made));
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  Expression made = node(Kind::item);
  tokens_.take();
  made.parts.push_back(std::move(object));
  made.parts.push_back(tokens_.is_sign(":") ? nullptr : expression());
  if (tokens_.is_sign(":")) {
    made.kind = Kind::slice;
    for (int i = 0; i < 2; ++i) {
      const bool more = tokens_.skip_sign(":");
      const bool empty = !more || tokens_.is_sign(":") || tokens_.is_sign("]");
      made.parts.push_back(empty ? nullptr : expression());
    }
  } else if (tokens_.is_sign(",")) {
    tokens_.fail_here("several values in one subscript are not supported");
  }
  tokens_.expect_sign("]");
  return finished(std::move(made));
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments arguments;
  tokens_.expect_sign("(");
  bool first = true;
  while (!tokens_.is_sign(")")) {
    if (!std::exchange(first, false)) tokens_.expect_sign(",");
    if (tokens_.is_sign(")")) break;
    const bool late = arguments.list || arguments.members;
    if (tokens_.skip_sign("*")) {
      if (late) tokens_.fail_here("invalid syntax for function call expression");
      arguments.list = expression();
    } else if (tokens_.skip_sign("**")) {
      if (arguments.members) tokens_.fail_here("invalid syntax for function call expression");
      arguments.members = expression();
    } else if (tokens_.is(TokenKind::name) && tokens_.ahead_is_sign("=")) {
      if (arguments.members) tokens_.fail_here("invalid syntax for function call expression");
      const std::string name = tokens_.take().text;
      tokens_.take();
      arguments.named.emplace_back(name, expression());
    } else {
      if (late || !arguments.named.empty()) {
        tokens_.fail_here("invalid syntax for function call expression");
      }
      arguments.positional.push_back(expression());
    }
  }
  tokens_.take();
  return arguments;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr function) {
  Expression made = node(Kind::call);
  made.parts.push_back(std::move(function));
  made.arguments = call_arguments();
  return finished(std::move(made));
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_any_name();
  while (tokens_.skip_sign(".")) name += "." + tokens_.expect_any_name();
  return name;
}

// Parses a filter, starting at its name.
ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  Expression made = node(Kind::filter);
  made.text = dotted_name();
  note_unknown(find_filter(made.text) != nullptr, "filter", made.text, made.line);
  if (value) made.parts.push_back(std::move(value));
  if (tokens_.is_sign("(")) made.arguments = call_arguments();
  return finished(std::move(made));
}

ExpressionPtr ExpressionParser::filters(bool begins_with_name) {
  ExpressionPtr chain;
  if (begins_with_name) chain = filter(nullptr);
  while (tokens_.skip_sign("|")) chain = filter(std::move(chain));
  return chain;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  Expression made = node(Kind::test);
  tokens_.take();
  const bool negated = tokens_.skip_name("not");
  made.text = dotted_name();
  note_unknown(find_test(made.text) != nullptr, "test", made.text, made.line);
  made.parts.push_back(std::move(value));
  const bool is_word = tokens_.is(TokenKind::name) && !tokens_.is_name("else") &&
                       !tokens_.is_name("or") && !tokens_.is_name("and");
  if (tokens_.is_name("is")) tokens_.fail_here("tests cannot be chained with is");
  if (tokens_.is_sign("(")) {
    made.arguments = call_arguments();
  } else if (is_word || tokens_.is(TokenKind::text) || tokens_.is(TokenKind::integer) ||
             tokens_.is(TokenKind::real) || tokens_.is_sign("[") || tokens_.is_sign("{")) {
    made.arguments.positional.push_back(postfix(primary()));
  }
  if (!negated) return finished(std::move(made));
  Expression outer = node(Kind::logical_not);
  outer.parts.push_back(finished(std::move(made)));
  return finished(std::move(outer));
}

Target ExpressionParser::single_target(bool with_namespace) {
  if (tokens_.skip_sign("(")) {
    Target inner = target(with_namespace);
    tokens_.expect_sign(")");
    return inner;
  }
  const int line = tokens_.now().line;
  const std::string name = tokens_.expect_any_name();
  constexpr std::string_view kConstants[] = {"true", "True", "false", "False", "none", "None"};
  if (std::find(std::begin(kConstants), std::end(kConstants), name) != std::end(kConstants)) {
    tokens_.fail_at(line, "can't assign to ", name);
  }
  Target made;
  made.symbol = symbol(name);
  if (with_namespace && tokens_.skip_sign(".")) made.member = tokens_.expect_any_name();
  return made;
}

Target ExpressionParser::target(bool with_namespace, std::string_view end) {
  if (++depth_ > kHighest) tokens_.fail_here("a target of more than ", kHighest, " levels");
  Target made;
  while (true) {
    if (!made.parts.empty()) tokens_.expect_sign(",");
    if (at_tuple_end(end) || tokens_.is_sign("=")) break;
    made.parts.push_back(single_target(with_namespace));
    if (!tokens_.is_sign(",")) break;
    made.is_tuple = true;
  }
  --depth_;
  if (made.is_tuple) return made;
  if (made.parts.empty()) tokens_.fail_here("expected a name, got ", describe(tokens_.now()));
  return std::move(made.parts[0]);
}

}  // namespace fp8kv::jinja
