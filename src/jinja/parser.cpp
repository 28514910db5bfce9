#include "jinja/parser.h"

#include <algorithm>
#include <span>

#include "jinja/expression_parser.h"

namespace fp8kv::jinja {
namespace {

constexpr int kDeepest = 100;  // levels of nested statements

class Parser {
 public:
  Parser(std::string_view source, const std::string& name)
      : tokens_(tokens_of(source, name), name), expressions_(tokens_, syntax_) {
    syntax_.name = name;
  }

  Syntax run() {
    syntax_.body = block_until({});
    expressions_.check_known();
    return std::move(syntax_);
  }

 private:
  using Ends = std::vector<std::string_view>;

  // Parses statements up to a tag that begins with one of `ends`. That tag is not consumed. Without
  // `ends`, parses to the end of the template.
  Block block_until(const Ends& ends) {
    if (++depth_ > kDeepest) tokens_.fail_here("more than ", kDeepest, " statements in each other");
    Block block;
    while (!tokens_.is(TokenKind::end)) {
      if (tokens_.is(TokenKind::data)) {
        block.push_back(data());
      } else if (tokens_.is(TokenKind::print_begin)) {
        block.push_back(print());
      } else {
        tokens_.expect(TokenKind::block_begin);
        if (std::any_of(ends.begin(), ends.end(),
                        [&](std::string_view end) { return tokens_.is_name(end); })) {
          --depth_;
          return block;
        }
        block.push_back(statement(ends));
        tokens_.expect(TokenKind::block_end);
      }
    }
    if (!ends.empty()) tokens_.fail_here("the template ends where '", ends.back(), "' is expected");
    --depth_;
    return block;
  }

  // Parses the rest of a tag and the body behind it, up to the name that ends it.
  Block body_until(const Ends& ends) {
    tokens_.skip_sign(":");
    tokens_.expect(TokenKind::block_end);
    return block_until(ends);
  }

  Block whole_body(std::string_view end) {
    Block block = body_until({end});
    tokens_.take();
    return block;
  }

  Statement make(StatementKind kind) const {
    Statement made;
    made.kind = kind;
    made.line = tokens_.now().line;
    return made;
  }

  Statement data() {
    Statement made = make(StatementKind::data);
    const std::string& text = tokens_.take().text;
    syntax_.literals += text;
    syntax_.literals += '\0';
    made.data = MarkedText(text, Origin::from_template);
    return made;
  }

  Statement print() {
    Statement made = make(StatementKind::print);
    tokens_.take();
    made.values.push_back(expressions_.tuple(true));
    tokens_.expect(TokenKind::print_end);
    return made;
  }

  Statement statement(const Ends& ends) {
    const std::string name = tokens_.is(TokenKind::name) ? tokens_.now().text : "";
    const struct {
      std::string_view name;
      Statement (Parser::*parse)();
    } kinds[] = {{"if", &Parser::condition},      {"for", &Parser::loop},
                 {"set", &Parser::assign},        {"macro", &Parser::macro},
                 {"call", &Parser::call_block},   {"filter", &Parser::filter_block},
                 {"with", &Parser::with},         {"generation", &Parser::generation},
                 {"block", &Parser::named_block}, {"autoescape", &Parser::autoescape},
                 {"break", &Parser::leave},       {"continue", &Parser::leave},
                 {"print", &Parser::print_many}};
    for (const auto& kind : kinds) {
      if (kind.name == name) return (this->*kind.parse)();
    }
    constexpr std::string_view kOthers[] = {"include", "import", "from", "extends"};
    if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers)) {
      tokens_.fail_here("'", name, "' is not supported: a chat template stands alone");
    }
    const std::string open = ends.empty() ? "" : cat("; '", ends.back(), "' is expected here");
    tokens_.fail_here("unknown tag ", describe(tokens_.now()), open);
  }

  // Unknown filters within conditions are an error only when they are reached.
  class Forgiving {
   public:
    Forgiving(ExpressionParser& expressions, bool forgives)
        : expressions_(expressions), before_(expressions.forgives_unknown()) {
      expressions.forgive_unknown(forgives);
    }
    ~Forgiving() { expressions_.forgive_unknown(before_); }
    Forgiving(const Forgiving&) = delete;
    Forgiving& operator=(const Forgiving&) = delete;

   private:
    ExpressionParser& expressions_;
    bool before_;
  };

  Statement condition() {
    Statement made = make(StatementKind::condition);
    const Forgiving within(expressions_, true);
    while (true) {
      const bool has_condition = !tokens_.is_name("else");
      tokens_.take();
      Branch branch;
      if (has_condition) branch.condition = expressions_.tuple(false);
      branch.body = has_condition ? body_until({"elif", "else", "endif"}) : body_until({"endif"});
      made.branches.push_back(std::move(branch));
      if (tokens_.is_name("endif")) break;
    }
    tokens_.take();
    return made;
  }

  Statement loop() {
    Statement made = make(StatementKind::loop);
    tokens_.take();
    made.targets.push_back(expressions_.target(false, "in"));
    tokens_.expect_name("in");
    made.values.push_back(expressions_.tuple(false, "recursive"));
    const Forgiving within(expressions_, false);
    if (tokens_.skip_name("if")) made.condition = expressions_.expression();
    made.recursive = tokens_.skip_name("recursive");
    ++loops_;
    made.body = body_until({"endfor", "else"});
    --loops_;
    if (tokens_.take().text == "else") made.otherwise = whole_body("endfor");
    return made;
  }

  Statement assign() {
    Statement made = make(StatementKind::assign);
    tokens_.take();
    made.targets.push_back(expressions_.target(true));
    if (tokens_.skip_sign("=")) {
      made.values.push_back(expressions_.tuple(true));
      return made;
    }
    made.kind = StatementKind::assign_block;
    const Forgiving within(expressions_, false);
    if (ExpressionPtr filters = expressions_.filters(false)) {
      made.values.push_back(std::move(filters));
    }
    made.body = whole_body("endset");
    return made;
  }

  std::vector<Parameter> signature() {
    std::vector<Parameter> parameters;
    tokens_.expect_sign("(");
    while (!tokens_.is_sign(")")) {
      if (!parameters.empty()) tokens_.expect_sign(",");
      Parameter parameter;
      parameter.name = tokens_.expect_any_name();
      parameter.symbol = expressions_.symbol(parameter.name);
      if (tokens_.skip_sign("=")) {
        parameter.otherwise = expressions_.expression();
      } else if (!parameters.empty() && parameters.back().otherwise) {
        tokens_.fail_here("non-default argument follows default argument");
      }
      parameters.push_back(std::move(parameter));
    }
    tokens_.take();
    return parameters;
  }

  // Parses the body of a macro or call block. Notes the implicit names that it uses.
  void read_macro_body(MacroBody& macro, std::string_view end) {
    const Forgiving within(expressions_, false);
    const ExpressionParser::Implicit before = expressions_.take_implicit();
    const int loops = std::exchange(loops_, 0);
    macro.body = whole_body(end);
    loops_ = loops;
    const ExpressionParser::Implicit used = expressions_.take_implicit();
    const auto asks = [&](bool is_used, std::string_view name) {
      return is_used && std::none_of(macro.parameters.begin(), macro.parameters.end(),
                                     [&](const Parameter& each) { return each.name == name; });
    };
    macro.uses_varargs = asks(used.varargs, "varargs");
    macro.uses_kwargs = asks(used.kwargs, "kwargs");
    macro.uses_caller = used.caller;
    expressions_.add_implicit(before);
    expressions_.add_implicit(used);
  }

  Statement macro() {
    Statement made = make(StatementKind::macro);
    tokens_.take();
    auto body = std::make_unique<MacroBody>();
    body->name = tokens_.expect_any_name();
    made.targets.emplace_back().symbol = expressions_.symbol(body->name);
    body->parameters = signature();
    read_macro_body(*body, "endmacro");
    made.macro = std::move(body);
    return made;
  }

  Statement call_block() {
    Statement made = make(StatementKind::call_block);
    tokens_.take();
    auto body = std::make_unique<MacroBody>();
    body->name = "caller";
    if (tokens_.is_sign("(")) body->parameters = signature();
    made.values.push_back(expressions_.expression());
    if (made.values[0]->kind != ExpressionKind::call) tokens_.fail_here("expected a call");
    read_macro_body(*body, "endcall");
    made.macro = std::move(body);
    return made;
  }

  Statement filter_block() {
    Statement made = make(StatementKind::filter_block);
    tokens_.take();
    const Forgiving within(expressions_, false);
    made.values.push_back(expressions_.filters(true));
    made.body = whole_body("endfilter");
    return made;
  }

  Statement with() {
    Statement made = make(StatementKind::scope);
    tokens_.take();
    const Forgiving within(expressions_, false);
    while (!tokens_.is(TokenKind::block_end)) {
      if (!made.targets.empty()) tokens_.expect_sign(",");
      made.targets.push_back(expressions_.target(false));
      tokens_.expect_sign("=");
      made.values.push_back(expressions_.expression());
    }
    made.body = whole_body("endwith");
    return made;
  }

  Statement generation() {
    Statement made = make(StatementKind::scope);
    tokens_.take();
    const Forgiving within(expressions_, false);
    const int loops = std::exchange(loops_, 0);
    made.body = whole_body("endgeneration");
    loops_ = loops;
    return made;
  }

  Statement named_block() {
    Statement made = make(StatementKind::scope);
    tokens_.take();
    const std::string name = tokens_.expect_any_name();
    tokens_.skip_name("scoped");
    tokens_.skip_name("required");
    made.body = whole_body("endblock");
    tokens_.skip_name(name);
    return made;
  }

  Statement autoescape() {
    Statement made = make(StatementKind::scope);
    tokens_.take();
    if (!tokens_.skip_name("false")) tokens_.fail_here("autoescape is not supported");
    made.body = whole_body("endautoescape");
    return made;
  }

  Statement leave() {
    if (loops_ == 0) tokens_.fail_here("'", tokens_.now().text, "' outside of a loop");
    const bool is_break = tokens_.is_name("break");
    Statement made = make(is_break ? StatementKind::break_loop : StatementKind::continue_loop);
    tokens_.take();
    return made;
  }

  Statement print_many() {
    Statement made = make(StatementKind::print);
    tokens_.take();
    while (!tokens_.is(TokenKind::block_end)) {
      if (!made.values.empty()) tokens_.expect_sign(",");
      made.values.push_back(expressions_.expression());
    }
    return made;
  }

  Syntax syntax_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Syntax parse_template(std::string_view source, const std::string& name) {
  return Parser(source, name).run();
}

}  // namespace fp8kv::jinja
