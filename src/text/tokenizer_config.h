// tokenizer_config.json and what stands beside it: which tokens a tokenizer has beyond its model,
// and what it puts around a text. Read where there is no tokenizer.json, which says all of that.
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
  // Its id is kNone where the files leave it to the model.
  using Token = AddedTokens::Token;

  std::string where;            // tokenizer_config.json, or where it would be
  std::string tokenizer_class;  // without "Fast" at its end; "" when none is said
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_prefix_space;
  bool legacy = true;
  // By its key, such as "bos_token"; nothing where the file says that there is none.
  std::map<std::string, std::optional<Token>, std::less<>> named;
  std::vector<Token> others;

  // From `folder`, any of whose files may be missing: tokenizer_config.json,
  // special_tokens_map.json and added_tokens.json.
  static TokenizerConfig read(const std::filesystem::path& folder);

  enum class Renames { allowed, refused };
  // All tokens with their ids, no two of the same content: those of `vocabulary` have theirs,
  // others what the files say or else the next free one. `renames`: whether a token may take the
  // place of another one of the vocabulary. Throws for ids that contradict each other.
  std::vector<Token> resolve(const Vocabulary& vocabulary, Renames renames) const;

  // What is put around a text. Throws when a token that is wanted has no id.
  Template affixes(bool bos, bool eos, const std::vector<Token>& tokens,
                   const Vocabulary& vocabulary) const;
};

}  // namespace fp8kv
