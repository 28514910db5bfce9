// SentencePiece's normalisation before text is cut into pieces. It replaces characters, joins runs
// of spaces, and writes spaces as U+2581.
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
  // `prefix_once`: adds the leading space only to the first part of a text, not after special
  // tokens too.
  PieceNormalizer(const SentencePieceFile& file, bool prefix_once);

  // Replaces `out` by the normalised `text`. Both are valid UTF-8. `is_first`: `text` begins the
  // whole text.
  void apply(std::string_view text, bool is_first, std::string& out,
             const GrowthLimit& limit) const;

 private:
  struct Front {
    std::string_view text;  // the replacement for the front of the text
    size_t length;          // length of the front
  };
  Front front(std::string_view text) const;
  void append(std::string_view text, std::string& out) const;

  std::string_view space_;  // the spelling of a space
  bool add_prefix_;
  bool prefix_once_;
  bool add_suffix_;
  bool remove_extra_;
  ByteTrie kept_;  // user-defined pieces, which stay as they are
  Charsmap charsmap_;
};

}  // namespace fp8kv
