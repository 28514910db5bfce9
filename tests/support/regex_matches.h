// Matches by a regular expression engine, to compare with our own pattern reader.
#pragma once

#include <regex>
#include <string>

namespace fp8kv::test {

// Like Python's re.match: anchored at the start but not at the end.
inline bool regex_matches(const std::string& pattern, const std::string& text) {
  return std::regex_search(text, std::regex(pattern), std::regex_constants::match_continuous);
}

}  // namespace fp8kv::test
