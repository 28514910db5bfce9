// Entries of the `ignore` lists of compressed-tensors.
#pragma once

#include <optional>
#include <string_view>

namespace fp8kv {

// Whether an entry of such a list is about this module: its name, or a regular expression after
// "re:" that matches from its beginning, as Python's re.match. nullopt where the expression uses
// more than plain characters, ".", "*", "^", "$" and escaped punctuation.
std::optional<bool> pattern_matches(std::string_view pattern, std::string_view module);

}  // namespace fp8kv
