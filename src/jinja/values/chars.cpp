#include "jinja/values/chars.h"

#include <algorithm>

#include "unicode/characters.h"

namespace fp8kv::jinja {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

size_t char_count(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), continues));
}

size_t byte_of_char(std::string_view text, size_t at, size_t chars) {
  for (; chars > 0 && at < text.size(); --chars) {
    ++at;
    while (at < text.size() && continues(text[at])) ++at;
  }
  return at;
}

bool is_python_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

}  // namespace fp8kv::jinja
