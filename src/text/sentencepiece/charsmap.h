// SentencePiece's rules for replacing characters, a "precompiled charsmap". It has a double array
// of the strings to replace (Darts-clone), and their replacements, each ended by a zero.
// Source: src/normalizer.cc of https://github.com/google/sentencepiece, and darts.h there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

class Charsmap {
 public:
  Charsmap() = default;  // replaces nothing
  // Throws, naming `where`, if `bytes` is no charsmap.
  Charsmap(std::string_view bytes, const std::string& where);

  struct Match {
    size_t length;  // in the text
    std::string_view replacement;
  };
  // Finds the longest string to replace at the beginning of `text`.
  std::optional<Match> longest(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;  // valid UTF-8
};

}  // namespace fp8kv
