#include "unicode/char_ranges.h"

#include <algorithm>
#include <charconv>

#include "unicode/characters.h"

namespace fp8kv {

void CharRanges::append(Range range) {
  if (range.begin == range.end) return;
  if (!ranges_.empty() && ranges_.back().end == range.begin) {
    ranges_.back().end = range.end;
  } else {
    ranges_.push_back(range);
  }
}

bool CharRanges::has(char32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](char32_t a, const Range& b) { return a < b.begin; });
  return after != ranges_.begin() && c < std::prev(after)->end;
}

bool CharRanges::has_any_of(std::string_view text) const {
  if (empty()) return false;
  const char32_t first = ranges_.front().begin;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80 && first >= 0x80) {
      ++at;
      continue;
    }
    const char32_t c = next_char(text, at);
    if (c >= first && has(c)) return true;
  }
  return false;
}

CharRanges CharRanges::others() const {
  CharRanges made;
  char32_t at = 0;
  for (const Range& range : ranges_) {
    made.append({at, range.begin});
    at = range.end;
  }
  made.append({at, kEnd});
  return made;
}

CharRanges CharRanges::shared_with(const CharRanges& that) const {
  CharRanges made;
  for (auto a = ranges_.begin(), b = that.ranges_.begin();
       a != ranges_.end() && b != that.ranges_.end();) {
    const Range both{std::max(a->begin, b->begin), std::min(a->end, b->end)};
    if (both.begin < both.end) made.append(both);
    a->end < b->end ? ++a : ++b;
  }
  return made;
}

CharRanges CharRanges::joined_with(const CharRanges& that) const {
  return others().shared_with(that.others()).others();
}

std::string CharRanges::class_items() const {
  std::string text;
  const auto append_hex = [&](char32_t c) {
    char digits[8];
    const auto end = std::to_chars(digits, std::end(digits), uint32_t{c}, 16).ptr;
    text.append("\\x{").append(digits, end).append("}");
  };
  for (const Range& range : shared_with({{0, 0xD800}, {0xE000, kEnd}}).ranges_) {
    append_hex(range.begin);
    if (range.end - range.begin == 1) continue;
    text += '-';
    append_hex(range.end - 1);
  }
  return text;
}

}  // namespace fp8kv
