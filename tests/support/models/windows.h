// Windows of token ids from a seed, for models of test::tiny_config().
#pragma once

#include <cstdint>
#include <vector>

namespace fp8kv::test {

inline std::vector<std::vector<int32_t>> windows_of(const std::vector<size_t>& lengths,
                                                    uint32_t seed) {
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

}  // namespace fp8kv::test
