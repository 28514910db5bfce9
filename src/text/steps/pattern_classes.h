// Properties of characters in patterns. PCRE2's \p{...} is of the version of Unicode that it was
// built with, and fast; lists of ranges can say what unicode_tables.h has, and are many times
// slower. So a pattern is written in both ways, and text in which no character tells the two apart
// is matched in the fast one (pattern.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "unicode/char_ranges.h"

namespace fp8kv {

// The sets of one pattern: comparing one takes milliseconds, and patterns name each several times.
class PatternClasses {
 public:
  struct Items {
    std::string fast;   // by PCRE2's properties
    std::string exact;  // ranges
  };
  // What to write between [ and ] for the characters that have, or have not, a property: a general
  // category ("L", "Nd"), a script ("Han", "hani") or "Alphabetic". Nothing for another name.
  std::optional<Items> items(std::string_view property, bool negated);

  // The characters that tell the two ways apart, in any set asked for so far.
  const CharRanges& differences() const { return differences_; }

 private:
  struct Set {
    Items members;
    Items others;
  };
  std::optional<Set> make(std::string_view property);

  std::map<std::string, std::optional<Set>, std::less<>> known_;
  CharRanges differences_;
};

}  // namespace fp8kv
