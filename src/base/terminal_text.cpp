#include "base/terminal_text.h"

#include <cstdio>

#include "base/utf8.h"

namespace fp8kv {
namespace {

// Whether a character controls the terminal or the text's direction instead of showing. REQUIRES
// the bytes of one character in UTF-8.
bool acts_without_showing(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  if (s.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (s.size() == 2) {  // U+0080 to U+009F; U+061C
    return (byte(0) == 0xC2 && byte(1) < 0xA0) || (byte(0) == 0xD8 && byte(1) == 0x9C);
  }
  if (s.size() != 3 || byte(0) != 0xE2) return false;
  if (byte(1) == 0x80) {  // U+200E, U+200F; U+2028 to U+202E
    return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  }
  return byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;  // U+2066 to U+2069
}

std::string cleaned(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Visible front = visible_front(text);
    const std::string_view character = text.substr(0, front.length);
    text.remove_prefix(front.length);
    if (front.shows || kept.find(character) != kept.npos) {
      out += character;
      continue;
    }
    for (const char c : character) {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      out += escaped;
    }
  }
  return out;
}

}  // namespace

Visible visible_front(std::string_view text) {
  const size_t length = utf8_length(text);
  if (length == 0) return {1, false};
  return {length, !acts_without_showing(text.substr(0, length))};
}

bool shows_as_it_is(std::string_view text) {
  while (!text.empty()) {
    const Visible front = visible_front(text);
    if (!front.shows) return false;
    text.remove_prefix(front.length);
  }
  return true;
}

std::string terminal_line(std::string_view line) {
  return cleaned(line, "");
}

std::string terminal_text(std::string_view text) {
  return cleaned(text, "\n\t\u200e\u200f\u061c");
}

}  // namespace fp8kv
