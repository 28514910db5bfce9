// Upper case, as Python's str.upper() has it, character by character.
#pragma once

#include <string>

namespace fp8kv {

void append_upper(std::string& out, char32_t c);
// What a word begins with: "Dz" where upper case is "DZ".
void append_title(std::string& out, char32_t c);

}  // namespace fp8kv
