// What SentencePiece does to text before it is cut into pieces: characters are replaced, spaces are
// made one, and written as U+2581.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/models/byte_trie.h"
#include "text/models/growth_limit.h"
#include "text/sentencepiece/charsmap.h"
#include "text/sentencepiece/sentencepiece_file.h"

namespace fp8kv {

class PieceNormalizer {
 public:
  // `prefix_once`: the space before a text is put before the first part of it alone, not after
  // special tokens too.
  PieceNormalizer(const SentencePieceFile& file, bool prefix_once);

  // Replaces `out` by the normalised `text`, which is valid UTF-8; so is the result. `is_first`:
  // `text` begins where the whole text does.
  void apply(std::string_view text, bool is_first, std::string& out,
             const GrowthLimit& limit) const;

 private:
  struct Front {
    std::string_view text;  // what the front of the text becomes
    size_t length;          // of the front
  };
  Front front(std::string_view text) const;
  void append(std::string_view text, std::string& out) const;

  std::string_view space_;  // how a space is written
  bool add_prefix_;
  bool prefix_once_;
  bool add_suffix_;
  bool remove_extra_;
  ByteTrie kept_;  // the pieces that the user defined: they stay as they are
  Charsmap charsmap_;
};

}  // namespace fp8kv
