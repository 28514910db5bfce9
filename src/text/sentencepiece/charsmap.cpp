#include "text/sentencepiece/charsmap.h"

#include <cstring>

#include "base/error.h"

namespace fp8kv {
namespace {

// A unit of the double array: the next state for a byte, or the value of a string that ends.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t value(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
uint32_t label(uint32_t unit) {
  return unit & 0x800000FF;
}
uint32_t offset(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200) >> 6);
}

uint32_t unit_at(std::string_view bytes, size_t at) {
  uint32_t unit = 0;
  for (size_t i = 4; i-- > 0;) unit = unit << 8 | static_cast<unsigned char>(bytes[at + i]);
  return unit;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  const size_t size = bytes.size() < 4 ? 0 : unit_at(bytes, 0);
  if (size == 0 || size % 4 != 0 || size >= bytes.size() - 4) {
    fail(where, ": is no precompiled charsmap: its table of ", size, " bytes is not within ",
         bytes.size());
  }
  for (size_t at = 4; at < 4 + size; at += 4) units_.push_back(unit_at(bytes, at));
  replacements_ = bytes.substr(4 + size);
  if (!is_utf8(replacements_)) fail(where, ": replaces text with what is not valid UTF-8");
  replacements_ += '\0';
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> found;
  if (units_.empty()) return found;
  size_t place = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    place ^= byte;
    if (place >= units_.size()) break;
    const uint32_t unit = units_[place];
    if (label(unit) != byte) break;
    place ^= offset(unit);
    if (!has_leaf(unit) || place >= units_.size()) continue;
    const size_t begin = value(units_[place]);
    // Points past the end or into a character: the file is broken, and the text stays as it is.
    const bool broken = begin >= replacements_.size() ||
                        (static_cast<unsigned char>(replacements_[begin]) & 0xC0) == 0x80;
    if (broken) continue;
    const char* const replacement = replacements_.c_str() + begin;
    found = Match{i + 1, std::string_view(replacement, std::strlen(replacement))};
  }
  return found;
}

}  // namespace fp8kv
