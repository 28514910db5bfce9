// Python's string methods. The prompts of published tasks are made with them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fp8kv {

std::string_view stripped(std::string_view text);        // str.strip()
std::string_view stripped_right(std::string_view text);  // str.rstrip()
std::string lowered(std::string_view text);              // str.lower(), one character at a time
std::string capitalized(std::string_view text);          // str.capitalize(), likewise
std::string replaced(std::string_view text, std::string_view old, std::string_view by);
size_t count_characters(std::string_view text);  // len(str): the code points of valid UTF-8

}  // namespace fp8kv
