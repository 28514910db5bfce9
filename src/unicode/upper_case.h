// Upper case like Python's str.upper(), character by character.
#pragma once

#include <string>

namespace fp8kv {

void append_upper(std::string& out, char32_t c);
// Appends title case, which begins a word: "Dz" if upper case is "DZ".
void append_title(std::string& out, char32_t c);

}  // namespace fp8kv
