// Cuts a template into tokens with Jinja's rules for white space. As in transformers, trim_blocks
// and lstrip_blocks are on, and one newline at the end is dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::jinja {

enum class TokenKind {
  data,
  block_begin,
  block_end,
  print_begin,
  print_end,
  name,
  text,
  integer,
  real,
  sign,  // an operator or a bracket
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // for data, names, strings and signs
  int64_t whole = 0;
  double number = 0;
  int line = 1;
};

// `name`: for messages, "NAME: line N: ...". The last token is the end. Throws for anything that
// Jinja's lexer refuses, and for invalid UTF-8.
std::vector<Token> tokens_of(std::string_view source, const std::string& name);

// The name of a token in messages: "end of statement block".
std::string describe(const Token& token);

}  // namespace fp8kv::jinja
