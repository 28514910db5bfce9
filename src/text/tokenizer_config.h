// Reads tokenizer_config.json and the files beside it: the tokens beyond the model's, and those put
// around a text. Used if there is no tokenizer.json, which would have all of that.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "text/added_tokens.h"
#include "text/steps/template.h"

namespace fp8kv {

struct TokenizerConfig {
  // A token's id is kNone if the files leave it to the model.
  using Token = AddedTokens::Token;

  std::string where;            // the path of tokenizer_config.json, even if missing
  std::string tokenizer_class;  // without "Fast" at its end; "" if not given
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_prefix_space;
  bool legacy = true;
  // Named tokens by key, such as "bos_token". Nothing if the file says that there is none.
  std::map<std::string, std::optional<Token>, std::less<>> named;
  std::vector<Token> others;

  // Reads tokenizer_config.json, special_tokens_map.json and added_tokens.json from `folder`. Any
  // of them may be missing.
  static TokenizerConfig read(const std::filesystem::path& folder);

  enum class Renames { allowed, refused };
  // Returns all tokens with ids, each content once. A token of `vocabulary` keeps its id. Others
  // get the id in the files, or else the next free one. `renames`: whether a token may take the id
  // of another one in the vocabulary. Throws for contradicting ids.
  std::vector<Token> resolve(const Vocabulary& vocabulary, Renames renames) const;

  // Returns the tokens put around a text. Throws if a wanted token has no id.
  Template affixes(bool bos, bool eos, const std::vector<Token>& tokens,
                   const Vocabulary& vocabulary) const;
};

}  // namespace fp8kv
