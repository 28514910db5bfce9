// The parts of a BPE model, from whichever file: its tokens, and the pairs that are joined.
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
    int32_t rank;  // the lowest rank is joined first; ties: the leftmost pair
    int32_t merged;
  };

  std::string where;  // the model, for messages
  Vocabulary vocabulary;
  // Characters that are parts of tokens, but no tokens. They merge under ids behind those of the
  // vocabulary. Those that remain become byte pieces or unknown tokens.
  std::vector<char32_t> bare_characters;
  std::vector<Merge> merges;      // if a pair is listed twice, the last one counts
  std::string continuing_prefix;  // prefix of tokens that do not begin a word
  std::string end_suffix;         // suffix of tokens that end a word
  std::optional<std::string> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a word that is a token is not merged

  // Adds the pair as the next merge. Throws if a token is not in the vocabulary.
  void add_merge(std::string_view left, std::string_view right);
};

// Reads the "model" of a tokenizer.json. Throws for another type of model, for dropout, and for
// merges with tokens that are not in the vocabulary.
BpeTable bpe_table_from_json(const Json& model);

// Reads the texts of a vocab.json and a merges.txt, as GPT-2 has them. `merges_file` is the name
// for messages.
BpeTable bpe_table_from_files(const Json& vocab, std::string_view merges,
                              const std::string& merges_file);

// Makes a table from tokens in the order of joining, as in tiktoken. Neighbours that are a token
// together are joined, the lowest rank first. Tokens are bytes, the first 256 of them single bytes.
// They get the ids from `first_id` on. Throws for two equal tokens.
BpeTable bpe_table_from_ranks(const std::vector<std::string>& tokens, int32_t first_id,
                              const std::string& where);

}  // namespace fp8kv
