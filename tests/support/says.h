// Whether a message contains a part.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv::test {

inline bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fp8kv::test
