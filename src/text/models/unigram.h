// A Unigram model: cuts a word into the tokens whose scores have the largest sum. Computes sums as
// the tokenizers library does, or as SentencePiece does, which rounds them to single precision.
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
  double unknown_score = 0;    // for a character that is no token
  int32_t unknown_id = Vocabulary::kNone;
  bool byte_fallback = false;
  Rules rules = Rules::tokenizers;
};

// Reads the "model" of a tokenizer.json.
UnigramTable unigram_table_from_json(const Json& model);

class Unigram {
 public:
  // Throws for tokens that are too long to be searched.
  explicit Unigram(UnigramTable table);

  const Vocabulary& vocabulary() const { return table_.vocabulary; }

  struct Scratch {
    std::vector<double> sums;       // ring: sum of the best way to each of the next places
    std::vector<uint16_t> lengths;  // length of the token that ends at a place; 0: none yet
    std::vector<size_t> ends;       // ends of the decided tokens, in reverse
    std::vector<size_t> places;     // places that may lie on the best way
  };
  // Appends the ids of `word`. REQUIRES a non-empty word. Takes linear time, and memory for the
  // part that is not decided yet. Throws if a character needs the unknown token and there is none.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  class Search;
  void append_run(std::string_view run, std::vector<int32_t>& ids) const;

  UnigramTable table_;
  ByteTrie tokens_;
  BytePieces byte_pieces_;  // empty without byte fallback
};

}  // namespace fp8kv
