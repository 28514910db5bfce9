// Foreign text on its way to a terminal. Everything that is printed for people goes through here;
// JSON does not, as its readers want the names as they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fp8kv {

// The character at the front of a text. It shows unless it is a control character, C1 included, a
// mark that turns the direction of writing, a line separator, or not UTF-8.
struct Visible {
  size_t length;  // in bytes, 1 for what is not UTF-8
  bool shows;
};

// REQUIRES `text` not to be empty.
Visible visible_front(std::string_view text);

// Whether every character of `text` shows. A newline does not.
bool shows_as_it_is(std::string_view text);

// A line, or a part of one: every byte that does not show becomes \x1b. Uncut, and without quotes.
std::string terminal_line(std::string_view line);

// Lines: as terminal_line, with line ends and tabs as they are. U+200E, U+200F and U+061C stay too:
// texts in Hebrew and Arabic need them, and they turn no other text around.
std::string terminal_text(std::string_view text);

}  // namespace fp8kv
