// Sets of characters, stored as ranges.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unicode/unicode_tables.h"

namespace fp8kv {

class CharRanges {
 public:
  struct Range {
    char32_t begin;
    char32_t end;
  };

  CharRanges() = default;
  CharRanges(std::initializer_list<Range> ranges) : ranges_(ranges) {}

  template <typename IsMember>
  static CharRanges of(unicode::Runs runs, const IsMember& is_member) {
    CharRanges made;
    for (size_t i = 0; i < runs.size(); ++i) {
      const char32_t end = i + 1 < runs.size() ? runs[i + 1] >> 8 : kEnd;
      if (is_member(runs[i] & 0xFF)) made.append({runs[i] >> 8, end});
    }
    return made;
  }

  // REQUIRES that the range begins at or after the end of the last one.
  void append(Range range);

  bool empty() const { return ranges_.empty(); }
  bool has(char32_t c) const;
  bool has_any_of(std::string_view text) const;  // `text` must be valid UTF-8

  CharRanges others() const;
  CharRanges shared_with(const CharRanges& that) const;
  CharRanges joined_with(const CharRanges& that) const;

  // The set as items of a PCRE2 class, for use between brackets. Surrogates are left out, since
  // PCRE2 refuses them.
  std::string class_items() const;

 private:
  static constexpr char32_t kEnd = 0x110000;
  std::vector<Range> ranges_;  // in order, and never adjacent
};

}  // namespace fp8kv
