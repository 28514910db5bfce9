// The special tokens that a class of tokenizers has where its files do not name them: a table.
#pragma once

#include <span>
#include <string_view>

namespace fp8kv {

struct TokenDefault {
  std::string_view name;  // "bos_token"
  std::string_view token;
};

// What transformers 5.23 gives templates of a model whose tokenizer_config.json says this
// tokenizer_class, with or without "Fast" at its end. Classes that it loads from tokenizer.json as
// a tokenizer of no class, Llama's among them, have none there.
std::span<const TokenDefault> token_defaults(std::string_view tokenizer_class,
                                             bool has_tokenizer_json);

}  // namespace fp8kv
