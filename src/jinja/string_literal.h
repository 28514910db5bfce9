// Decodes string literals of templates.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv::jinja {

// Decodes the text between the quotes with Python's escapes. Returns false for escapes that Python
// refuses, for \N{...}, and for surrogates.
bool unescape(std::string_view text, std::string& out);

}  // namespace fp8kv::jinja
