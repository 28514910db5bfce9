// Windows of token ids, random for models of test::tiny_config(), or from a reference.
#pragma once

#include <cstdint>
#include <vector>

#include "json/json.h"

namespace fp8kv::test {

inline std::vector<std::vector<int32_t>> windows_of(const std::vector<size_t>& lengths,
                                                    uint32_t seed = 11) {
  std::vector<std::vector<int32_t>> windows;
  uint32_t state = seed;
  for (const size_t length : lengths) {
    std::vector<int32_t>& window = windows.emplace_back();
    for (size_t i = 0; i < length; ++i) {
      state = state * 1664525u + 1013904223u;
      window.push_back(static_cast<int32_t>((state >> 8) % 64));
    }
  }
  return windows;
}

// The windows that a reference was computed on, its `window_ids`.
inline std::vector<std::vector<int32_t>> windows_of(const Json& reference) {
  std::vector<std::vector<int32_t>> windows;
  const Json all = reference.at("window_ids");
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<int32_t>& window = windows.emplace_back();
    for (size_t j = 0; j < all[i].size(); ++j) {
      window.push_back(static_cast<int32_t>(all[i][j].as_int()));
    }
  }
  return windows;
}

}  // namespace fp8kv::test
