#include "base/shell.h"

#include <algorithm>
#include <cstdio>

#include "base/terminal_text.h"

namespace fp8kv {
namespace {

bool needs_no_quotes(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./+,:@%").find(c) != std::string_view::npos;
}

// The text between $' and '. Escapes are octal, since a hexadecimal one could swallow the next
// digit.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Visible front = visible_front(text);
    for (const char c : text.substr(0, front.length)) {
      if (front.shows && c != '\'' && c != '\\') {
        out += c;
        continue;
      }
      char octal[5];
      std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned char>(c));
      out += octal;
    }
    text.remove_prefix(front.length);
  }
  return out;
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), needs_no_quotes)) {
    return std::string(text);
  }
  if (!shows_as_it_is(text)) return "$'" + escaped(text) + "'";
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_path(std::string_view path) {
  return shell_word((path.starts_with('-') ? "./" : "") + std::string(path));
}

}  // namespace fp8kv
