// What a BPE model consists of, whichever file says it: its tokens, and which pairs join to what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "text/models/vocabulary.h"

namespace fp8kv {

struct BpeTable {
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t rank;  // the lowest is joined first; of equal ones the leftmost
    int32_t merged;
  };

  std::string where;  // the model, for messages
  Vocabulary vocabulary;
  // Characters that are parts of tokens, but no tokens: they merge under the ids that follow those
  // of the vocabulary, and those that are left become byte pieces or unknown tokens.
  std::vector<char32_t> bare_characters;
  std::vector<Merge> merges;      // of a pair that is listed twice, the last counts
  std::string continuing_prefix;  // of tokens that do not begin a word
  std::string end_suffix;         // of tokens that end a word
  std::optional<std::string> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a word that is a token is not merged

  // Adds the pair as the next one of the list. Throws for tokens that the vocabulary lacks.
  void add_merge(std::string_view left, std::string_view right);
};

// From the "model" of a tokenizer.json. Throws for another type of model, for dropout, and for
// merges that name tokens the vocabulary lacks.
BpeTable bpe_table_from_json(const Json& model);

// From the texts of a vocab.json and a merges.txt, as GPT-2 has them. `merges_file` is the name for
// messages.
BpeTable bpe_table_from_files(const Json& vocab, std::string_view merges,
                              const std::string& merges_file);

// From tokens in the order in which they are joined, as tiktoken has them: any pair of neighbours
// that is a token together is joined, that with the lowest rank first. Tokens are bytes, the first
// 256 of them single ones, and get the ids from `first_id` on. Throws for two that are equal.
BpeTable bpe_table_from_ranks(const std::vector<std::string>& tokens, int32_t first_id,
                              const std::string& where);

}  // namespace fp8kv
