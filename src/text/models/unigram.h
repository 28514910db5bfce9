// A Unigram model: of all ways to cut a word into tokens, the one whose scores have the largest
// sum. As the tokenizers library computes it, or as SentencePiece does, which rounds sums to single
// precision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "text/models/byte_pieces.h"
#include "text/models/byte_trie.h"
#include "text/models/vocabulary.h"

namespace fp8kv {

struct UnigramTable {
  enum class Rules { tokenizers, sentencepiece };

  std::string where;  // the model, for messages
  Vocabulary vocabulary;
  std::vector<double> scores;  // by id
  std::vector<bool> in_text;   // by id: whether text can become the token
  double unknown_score = 0;    // of a character that is no token
  int32_t unknown_id = Vocabulary::kNone;
  bool byte_fallback = false;
  Rules rules = Rules::tokenizers;
};

// From the "model" of a tokenizer.json.
UnigramTable unigram_table_from_json(const Json& model);

class Unigram {
 public:
  // Throws for tokens too long to be looked for.
  explicit Unigram(UnigramTable table);

  const Vocabulary& vocabulary() const { return table_.vocabulary; }

  struct Scratch {
    std::vector<double> sums;       // of the best way to each of the next places, a ring
    std::vector<uint16_t> lengths;  // of the token that ends at a place; 0: none does yet
    std::vector<size_t> ends;       // of the tokens that are decided, backwards
    std::vector<size_t> places;     // that may still lie on the best way
  };
  // Appends the ids of `word`, which is not empty. Takes time linear in it, and memory for the part
  // of it that is not decided yet. Throws when a character needs the unknown token and there is
  // none.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  class Search;
  void append_run(std::string_view run, std::vector<int32_t>& ids) const;

  UnigramTable table_;
  ByteTrie tokens_;
  BytePieces byte_pieces_;  // none without byte fallback
};

}  // namespace fp8kv
