#include "tasks/items/python_text.h"

#include <algorithm>

#include "unicode/characters.h"
#include "unicode/upper_case.h"

namespace fp8kv {
namespace {

// str.isspace() also accepts the four separators of ASCII, U+001C to U+001F.
bool is_python_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

}  // namespace

std::string_view stripped_right(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    if (!is_python_space(next_char(text, at))) end = at;
  }
  return text.substr(0, end);
}

std::string_view stripped(std::string_view text) {
  text = stripped_right(text);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!is_python_space(next_char(text, at))) return text.substr(begin);
  }
  return text;
}

std::string lowered(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) append_lower(out, next_char(text, at));
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const char32_t c = next_char(text, at);
    first ? append_title(out, c) : append_lower(out, c);
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(old, at), text.size());
    out += text.substr(at, found - at);
    if (found < text.size()) out += by;
    at = found + old.size();
  }
  return out;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

}  // namespace fp8kv
