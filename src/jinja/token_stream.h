// The tokens of a template, as the parser consumes them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "jinja/lexer.h"

namespace fp8kv::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string name)
      : tokens_(std::move(tokens)), name_(std::move(name)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const Token& take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }

  bool is(TokenKind kind) const { return now().kind == kind; }
  bool is_sign(std::string_view sign) const { return is_text(now(), TokenKind::sign, sign); }
  bool is_name(std::string_view word) const { return is_text(now(), TokenKind::name, word); }
  bool ahead_is_sign(std::string_view sign) const {
    return is_text(ahead(), TokenKind::sign, sign);
  }
  bool ahead_is_name(std::string_view word) const {
    return is_text(ahead(), TokenKind::name, word);
  }

  // Takes the token if it is the given one. Returns whether it was.
  bool skip_sign(std::string_view sign) {
    const bool there = is_sign(sign);
    if (there) take();
    return there;
  }
  bool skip_name(std::string_view word) {
    const bool there = is_name(word);
    if (there) take();
    return there;
  }

  // Take the expected token. Each throws if another one is there.
  void expect_sign(std::string_view sign) {
    if (!skip_sign(sign)) fail_here("expected '", sign, "', got ", describe(now()));
  }
  void expect_name(std::string_view word) {
    if (!skip_name(word)) fail_here("expected '", word, "', got ", describe(now()));
  }
  void expect(TokenKind kind) {
    Token expected;
    expected.kind = kind;
    if (!is(kind)) fail_here("expected ", describe(expected), ", got ", describe(now()));
    take();
  }
  const std::string& expect_any_name() {
    if (!is(TokenKind::name)) fail_here("expected a name, got ", describe(now()));
    return take().text;
  }

  template <typename... Parts>
  [[noreturn]] void fail_here(const Parts&... parts) const {
    fail_at(now().line, parts...);
  }
  template <typename... Parts>
  [[noreturn]] void fail_at(int line, const Parts&... parts) const {
    fail(name_, ": line ", line, ": ", parts...);
  }

 private:
  static bool is_text(const Token& token, TokenKind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }

  std::vector<Token> tokens_;
  std::string name_;
  size_t at_ = 0;
};

}  // namespace fp8kv::jinja
