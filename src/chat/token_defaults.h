// A table of the special tokens that a tokenizer class has if its files do not name them.
#pragma once

#include <span>
#include <string_view>

namespace fp8kv {

struct TokenDefault {
  std::string_view name;  // "bos_token"
  std::string_view token;
};

// The tokens that transformers 5.23 gives templates for this tokenizer_class, with or without
// "Fast" at its end. Returns none for classes that it loads from tokenizer.json without a class,
// such as Llama's.
std::span<const TokenDefault> token_defaults(std::string_view tokenizer_class,
                                             bool has_tokenizer_json);

}  // namespace fp8kv
