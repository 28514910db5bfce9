// Strings as they are written in templates.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv::jinja {

// What stands between the quotes, with Python's escapes. False for those that Python refuses, for
// \N{...}, and for halves of characters.
bool unescape(std::string_view text, std::string& out);

}  // namespace fp8kv::jinja
