// Handles the characters of valid UTF-8 as Python counts and sorts them.
#pragma once

#include <cstddef>
#include <string_view>

namespace fp8kv::jinja {

size_t char_count(std::string_view text);

// The byte at which the character begins that is `chars` after the one at byte `at`. Returns the
// end of the text if there are fewer.
size_t byte_of_char(std::string_view text, size_t at, size_t chars);

// str.isspace() of one character.
bool is_python_space(char32_t c);

}  // namespace fp8kv::jinja
