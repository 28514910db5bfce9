// Properties of characters in patterns. PCRE2's \p{...} is fast, but follows the Unicode version
// that PCRE2 was built with. Lists of ranges follow unicode_tables.h, but are many times slower. So
// a pattern is written in both ways. Text without any character that they treat differently uses
// the fast one (pattern.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "unicode/char_ranges.h"

namespace fp8kv {

// The sets of one pattern. Caches them, since comparing one takes milliseconds and patterns repeat
// them.
class PatternClasses {
 public:
  struct Items {
    std::string fast;   // with PCRE2's properties
    std::string exact;  // with ranges
  };
  // Returns the items of a [class] for the characters with a property, or without it if `negated`.
  // A property is a general category ("L", "Nd"), a script ("Han", "hani") or "Alphabetic". Returns
  // nothing for another name.
  std::optional<Items> items(std::string_view property, bool negated);

  // The characters that the two ways treat differently, in any set asked for so far.
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
