#include "jinja/expression_parser.h"

namespace fp8kv::jinja {
int ExpressionParser::symbol(const std::string& name) {
  const auto [at, is_new] = symbols_.try_emplace(name, static_cast<int>(syntax_.names.size()));
  if (is_new) syntax_.names.push_back(name);
  return at->second;
}

Expression ExpressionParser::node(Kind kind) const {
  Expression made;
  made.kind = kind;
  made.line = tokens_.now().line;
  return made;
}

ExpressionPtr ExpressionParser::finished(Expression made) const {
  const auto add = [&](const ExpressionPtr& part) {
    if (part) made.height = std::max(made.height, part->height + 1);
  };
  for (const ExpressionPtr& part : made.parts) add(part);
  for (const ExpressionPtr& part : made.arguments.positional) add(part);
  for (const auto& [name, part] : made.arguments.named) add(part);
  add(made.arguments.list);
  add(made.arguments.members);
  if (made.height > kHighest) {
    tokens_.fail_at(made.line, "an expression of more than ", kHighest, " levels");
  }
  return std::make_unique<const Expression>(std::move(made));
}

ExpressionPtr ExpressionParser::joined(Kind kind, int line, ExpressionPtr a,
                                       ExpressionPtr b) const {
  Expression made;
  made.kind = kind;
  made.line = line;
  made.parts.push_back(std::move(a));
  made.parts.push_back(std::move(b));
  return finished(std::move(made));
}

void ExpressionParser::note_unknown(bool known, const char* what, const std::string& name,
                                    int line) {
  if (!known && !forgives_) unknown_.push_back({line, cat("no ", what, " named ", quote(name))});
}

void ExpressionParser::check_known() const {
  if (!unknown_.empty()) tokens_.fail_at(unknown_[0].line, unknown_[0].what);
}

ExpressionParser::Implicit ExpressionParser::take_implicit() {
  return std::exchange(implicit_, {});
}

void ExpressionParser::add_implicit(const Implicit& more) {
  implicit_.varargs |= more.varargs;
  implicit_.kwargs |= more.kwargs;
  implicit_.caller |= more.caller;
}

void ExpressionParser::add_literal(const std::string& text) {
  syntax_.literals += text;
  syntax_.literals += '\0';
}

// Every nested expression passes through here, which limits the depth of the parser's recursion.
ExpressionPtr ExpressionParser::expression(bool with_condition) {
  if (++depth_ > kHighest) tokens_.fail_here("an expression of more than ", kHighest, " levels");
  const size_t unknown = unknown_.size();
  ExpressionPtr value = logical_or();
  while (with_condition && tokens_.is_name("if")) {
    Expression made = node(Kind::conditional);
    tokens_.take();
    made.parts.push_back(logical_or());
    made.parts.push_back(std::move(value));
    made.parts.push_back(tokens_.skip_name("else") ? expression() : nullptr);
    value = finished(std::move(made));
    unknown_.resize(unknown);
  }
  --depth_;
  return value;
}

ExpressionPtr ExpressionParser::logical_or() {
  const int line = tokens_.now().line;
  ExpressionPtr left = logical_and();
  while (tokens_.skip_name("or")) {
    left = joined(Kind::logical_or, line, std::move(left), logical_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  const int line = tokens_.now().line;
  ExpressionPtr left = logical_not();
  while (tokens_.skip_name("and")) {
    left = joined(Kind::logical_and, line, std::move(left), logical_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!tokens_.is_name("not")) return comparison();
  if (++depth_ > kHighest) tokens_.fail_here("an expression of more than ", kHighest, " levels");
  Expression made = node(Kind::logical_not);
  tokens_.take();
  made.parts.push_back(logical_not());
  --depth_;
  return finished(std::move(made));
}

ExpressionPtr ExpressionParser::comparison() {
  constexpr std::pair<std::string_view, Comparison> kSigns[] = {
      {"==", Comparison::equal},   {"!=", Comparison::unequal}, {"<", Comparison::less},
      {"<=", Comparison::at_most}, {">", Comparison::greater},  {">=", Comparison::at_least}};
  Expression made = node(Kind::comparison);
  made.parts.push_back(sum());
  while (true) {
    const auto sign = std::find_if(std::begin(kSigns), std::end(kSigns),
                                   [&](const auto& each) { return tokens_.is_sign(each.first); });
    if (sign != std::end(kSigns)) {
      made.comparisons.push_back(sign->second);
    } else if (tokens_.is_name("in")) {
      made.comparisons.push_back(Comparison::in);
    } else if (tokens_.is_name("not") && tokens_.ahead_is_name("in")) {
      tokens_.take();
      made.comparisons.push_back(Comparison::not_in);
    } else {
      break;
    }
    tokens_.take();
    made.parts.push_back(sum());
  }
  return made.comparisons.empty() ? std::move(made.parts[0]) : finished(std::move(made));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (tokens_.is_sign("+") || tokens_.is_sign("-")) {
    Expression made = node(Kind::arithmetic);
    made.op = tokens_.take().text == "+" ? Operator::add : Operator::subtract;
    made.parts.push_back(std::move(left));
    made.parts.push_back(concatenation());
    left = finished(std::move(made));
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  Expression made = node(Kind::concatenation);
  made.parts.push_back(product());
  while (tokens_.skip_sign("~")) made.parts.push_back(product());
  return made.parts.size() == 1 ? std::move(made.parts[0]) : finished(std::move(made));
}

ExpressionPtr ExpressionParser::product() {
  constexpr std::pair<std::string_view, Operator> kSigns[] = {{"*", Operator::multiply},
                                                              {"/", Operator::divide},
                                                              {"//", Operator::floor_divide},
                                                              {"%", Operator::modulo}};
  ExpressionPtr left = power();
  while (true) {
    const auto sign = std::find_if(std::begin(kSigns), std::end(kSigns),
                                   [&](const auto& each) { return tokens_.is_sign(each.first); });
    if (sign == std::end(kSigns)) return left;
    Expression made = node(Kind::arithmetic);
    made.op = sign->second;
    tokens_.take();
    made.parts.push_back(std::move(left));
    made.parts.push_back(power());
    left = finished(std::move(made));
  }
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary();
  while (tokens_.is_sign("**")) {
    Expression made = node(Kind::arithmetic);
    made.op = Operator::power;
    tokens_.take();
    made.parts.push_back(std::move(left));
    made.parts.push_back(unary());
    left = finished(std::move(made));
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr value;
  if (tokens_.is_sign("-") || tokens_.is_sign("+")) {
    if (++depth_ > kHighest) tokens_.fail_here("an expression of more than ", kHighest, " levels");
    Expression made = node(tokens_.is_sign("-") ? Kind::negative : Kind::positive);
    tokens_.take();
    made.parts.push_back(unary(false));
    value = finished(std::move(made));
    --depth_;
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  if (tokens_.is_sign("(")) {
    tokens_.take();
    if (++depth_ > kHighest) tokens_.fail_here("an expression of more than ", kHighest, " levels");
    ExpressionPtr inner = tokens_.is_sign(")") ? finished(node(Kind::tuple)) : tuple(true);
    --depth_;
    tokens_.expect_sign(")");
    return inner;
  }
  if (tokens_.is_sign("[")) return list();
  if (tokens_.is_sign("{")) return dict();
  return constant_or_name();
}

ExpressionPtr ExpressionParser::constant_or_name() {
  Expression made = node(Kind::constant);
  const Token& token = tokens_.now();
  switch (token.kind) {
    case TokenKind::text: {
      std::string text;
      while (tokens_.is(TokenKind::text)) text += tokens_.take().text;
      add_literal(text);
      made.constant = Value::text(text);
      return finished(std::move(made));
    }
    case TokenKind::integer:
      made.constant = Value(tokens_.take().whole);
      return finished(std::move(made));
    case TokenKind::real:
      made.constant = Value(tokens_.take().number);
      return finished(std::move(made));
    case TokenKind::name:
      break;
    default:
      tokens_.fail_here("unexpected ", describe(token));
  }
  const std::string name = tokens_.take().text;
  if (name == "true" || name == "True") {
    made.constant = Value(true);
  } else if (name == "false" || name == "False") {
    made.constant = Value(false);
  } else if (name != "none" && name != "None") {
    made.kind = Kind::name;
    made.symbol = symbol(name);
    made.text = name;
    add_implicit({name == "varargs", name == "kwargs", name == "caller"});
  }
  return finished(std::move(made));
}

ExpressionPtr ExpressionParser::list() {
  Expression made = node(Kind::list);
  tokens_.take();
  while (!tokens_.is_sign("]")) {
    if (!made.parts.empty()) tokens_.expect_sign(",");
    if (tokens_.is_sign("]")) break;
    made.parts.push_back(expression());
  }
  tokens_.take();
  return finished(std::move(made));
}

ExpressionPtr ExpressionParser::dict() {
  Expression made = node(Kind::dict);
  tokens_.take();
  while (!tokens_.is_sign("}")) {
    if (!made.parts.empty()) tokens_.expect_sign(",");
    if (tokens_.is_sign("}")) break;
    made.parts.push_back(expression());
    tokens_.expect_sign(":");
    made.parts.push_back(expression());
  }
  tokens_.take();
  return finished(std::move(made));
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  return tokens_.is(TokenKind::block_end) || tokens_.is(TokenKind::print_end) ||
         tokens_.is_sign(")") || (!end.empty() && tokens_.is_name(end));
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, std::string_view end) {
  Expression made = node(Kind::tuple);
  bool is_tuple = false;
  while (true) {
    if (!made.parts.empty()) tokens_.expect_sign(",");
    if (at_tuple_end(end)) break;
    made.parts.push_back(expression(with_condition));
    if (!tokens_.is_sign(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return finished(std::move(made));
  if (made.parts.empty()) {
    tokens_.fail_here("expected an expression, got ", describe(tokens_.now()));
  }
  return std::move(made.parts[0]);
}

}  // namespace fp8kv::jinja
