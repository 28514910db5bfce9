#include "jinja/string_literal.h"

#include <charconv>

#include "unicode/characters.h"

namespace fp8kv::jinja {
namespace {

// Appends the character given by `size` hexadecimal digits at `at`, and moves past them.
bool append_hex(std::string_view text, size_t size, size_t& at, std::string& out) {
  uint32_t code = 0;
  const char* begin = text.data() + at;
  if (at + size > text.size()) return false;
  const auto [end, error] = std::from_chars(begin, begin + size, code, 16);
  if (error != std::errc() || end != begin + size) return false;
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
  append_char(out, code);
  at += size;
  return true;
}

void append_octal(std::string_view text, size_t& at, std::string& out) {
  char32_t code = 0;
  for (int i = 0; i < 3 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++i) {
    code = code * 8 + static_cast<char32_t>(text[at++] - '0');
  }
  append_char(out, code);
}

// Jinja turns non-ASCII characters into escapes before it reads a string. Behind a backslash, such
// an escape remains in the text.
void append_escape_of(std::string_view text, size_t& at, std::string& out) {
  const char32_t c = next_char(text, at);
  const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  out += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[(c >> (4 * i)) & 15];
}

bool append_escaped(std::string_view text, size_t& at, std::string& out) {
  constexpr std::string_view kLetters = "ntr\\'\"abfv";
  constexpr std::string_view kMeant = "\n\t\r\\'\"\a\b\f\v";
  if (at >= text.size()) return false;
  const char c = text[at];
  if (const size_t known = kLetters.find(c); known != kLetters.npos) {
    out += kMeant[known];
    ++at;
    return true;
  }
  if (c >= '0' && c <= '7') {
    append_octal(text, at, out);
    return true;
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    ++at;
    return append_hex(text, c == 'x' ? 2 : c == 'u' ? 4 : 8, at, out);
  }
  if (c == 'N') return false;
  if (c == '\n') {
    ++at;
  } else if (static_cast<unsigned char>(c) >= 0x80) {
    append_escape_of(text, at, out);
  } else {
    out += '\\';
    out += c;
    ++at;
  }
  return true;
}

}  // namespace

bool unescape(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out += text[at++];
    } else if (!append_escaped(text, ++at, out)) {
      return false;
    }
  }
  return true;
}

}  // namespace fp8kv::jinja
