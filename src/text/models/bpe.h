// A BPE model. A word starts as the tokens of its characters. Then the pair of neighbours that
// comes first in the list of merges is joined, again and again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/bpe_table.h"
#include "text/models/byte_pieces.h"
#include "text/models/flat_map.h"
#include "text/models/vocabulary.h"

namespace fp8kv {

// Caches the ids of short words, so that frequent words are merged once. Fixed size: a new word
// replaces the one it collides with.
class WordCache {
 public:
  // Appends the ids of `word`; returns false if it is not cached.
  bool find(std::string_view word, std::vector<int32_t>& ids) const;
  void store(std::string_view word, const int32_t* ids, size_t count);

 private:
  static constexpr size_t kSlots = size_t{1} << 15;
  static constexpr size_t kLongestWord = 30;
  static constexpr size_t kMostIds = 8;
  struct alignas(64) Slot {
    uint8_t length = 0;  // 0: empty
    uint8_t count = 0;
    std::array<char, kLongestWord> word;
    std::array<int32_t, kMostIds> ids;
  };
  std::vector<Slot> slots_;  // allocated by the first store
};

class Bpe {
 public:
  // `byte_spelled`: words come from a ByteLevel pre-tokenizer.
  Bpe(BpeTable table, bool byte_spelled);

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // Whether words are passed as raw bytes, not spelled in the byte alphabet. The result is the
  // same, without the detour. The vocabulary then has all 256 bytes.
  bool takes_raw_bytes() const { return raw_bytes_; }

  struct Symbol {
    int32_t id;
    int32_t previous;  // -1: none
    int32_t next;      // -1: none, kGone: merged into the one before
  };
  struct Candidate {
    int32_t rank;
    int32_t at;
    int32_t merged;
  };
  struct Scratch {
    std::vector<int32_t> ids;
    std::vector<Candidate> candidates;
    std::vector<Symbol> symbols;
    std::string spelled;
    WordCache cache;
  };
  // Appends the ids of `word`. REQUIRES a non-empty word. Throws if a character needs the unknown
  // token and the vocabulary has none.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  struct Merge {
    int32_t rank = INT32_MAX;
    int32_t merged = Vocabulary::kNone;
  };
  static uint64_t pair_key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  void find_byte_tokens(bool byte_spelled);
  void find_characters();
  void allow_cuts(const BpeTable& table);

  void encode_part(std::string_view part, Scratch& scratch, std::vector<int32_t>& ids) const;
  void split_into_characters(std::string_view word, std::vector<int32_t>& ids) const;
  int32_t character_id(char32_t c, std::string_view spelled, bool first, bool last) const;
  int32_t unknown_id(std::string_view character) const;
  void replace_bare_characters(std::vector<int32_t>& ids) const;
  const Merge* merge_of(int32_t left, int32_t right) const {
    return merges_.find(pair_key(left, right));
  }
  Candidate candidate(int32_t left, int32_t right, int32_t at) const;
  void merge_short(std::vector<int32_t>& ids, std::vector<Candidate>& candidates) const;
  void merge_long(Scratch& scratch) const;
  bool can_cut_between(char32_t before, char32_t after) const;

  std::string where_;
  Vocabulary vocabulary_;
  std::vector<char32_t> bare_characters_;
  FlatMap<Merge> merges_;
  std::string continuing_prefix_;
  std::string end_suffix_;
  std::optional<std::string> unknown_;
  int32_t unknown_id_ = Vocabulary::kNone;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  bool raw_bytes_ = false;
  std::array<int32_t, 256> byte_ids_{};   // with raw bytes: the id of each spelled byte
  BytePieces byte_pieces_;                // empty without byte fallback
  FlatMap<int32_t> characters_;           // tokens of one character
  std::array<int32_t, 128> ascii_ids_{};  // the same for ASCII; kNone if there is no token
  // Whether and where a long word can be cut before merging; see can_cut_between.
  bool can_cut_ = false;
  FlatMap<bool> joints_;
};

}  // namespace fp8kv
