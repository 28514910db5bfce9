// Matches the entries of compressed-tensors' `ignore` lists.
#pragma once

#include <optional>
#include <string_view>

namespace fp8kv {

// Whether an entry matches this module. It is the module's name, or "re:" and a regular expression
// that matches from the start, like Python's re.match. Returns nullopt if the expression uses more
// than plain characters, ".", "*", "^", "$" and escaped punctuation.
std::optional<bool> pattern_matches(std::string_view pattern, std::string_view module);

}  // namespace fp8kv
