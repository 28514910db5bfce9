// What a regular expression engine says of the patterns that are read here.
#pragma once

#include <regex>
#include <string>

namespace fp8kv::test {

// As Python's re.match: from the beginning, not to the end.
inline bool regex_matches(const std::string& pattern, const std::string& text) {
  return std::regex_search(text, std::regex(pattern), std::regex_constants::match_continuous);
}

}  // namespace fp8kv::test
