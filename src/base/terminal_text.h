// Makes foreign text safe for a terminal. All output for people goes through here. JSON does not,
// since programs need names unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fp8kv {

// The character at the front of a text. These do not show: control characters (C1 included), marks
// that turn the direction of writing, line separators, and bytes that are not UTF-8.
struct Visible {
  size_t length;  // in bytes; 1 for a byte that is not UTF-8
  bool shows;
};

// REQUIRES `text` not to be empty.
Visible visible_front(std::string_view text);

// Whether every character of `text` shows. A newline does not count as showing.
bool shows_as_it_is(std::string_view text);

// Makes a line, or a part of one, safe: every byte that does not show becomes \x1b. Does not cut or
// quote.
std::string terminal_line(std::string_view line);

// Like terminal_line for several lines: line ends and tabs stay. U+200E, U+200F and U+061C stay
// too, since Hebrew and Arabic texts need them, and they do not reverse other text.
std::string terminal_text(std::string_view text);

}  // namespace fp8kv
