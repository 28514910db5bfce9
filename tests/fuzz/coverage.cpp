#include "coverage.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// A byte for each hashed pair of consecutive places.
namespace {
constexpr size_t kMapSize = size_t{1} << 16;
alignas(8) uint8_t reached[kMapSize];
uint8_t known[kMapSize];  // classes of counts seen so far, one bit each
__attribute__((tls_model("initial-exec"))) thread_local uintptr_t last_place;
}  // namespace

extern "C" void __sanitizer_cov_trace_pc();
extern "C" void __sanitizer_cov_trace_pc() {
  const auto base = reinterpret_cast<uintptr_t>(&__sanitizer_cov_trace_pc);
  const uintptr_t place = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - base;
  const uintptr_t mixed = place * 0x9E3779B97F4A7C15u >> 40;
  uint8_t& count = reached[(mixed ^ last_place) % kMapSize];
  if (count < 255) ++count;
  last_place = mixed >> 1;
}

namespace fp8kv::fuzz {

void forget_reached() {
  std::memset(reached, 0, kMapSize);
  last_place = 0;
}

// Counts fall into AFL's classes: 1, 2, 3, 4-7, 8-15, ...
size_t take_new() {
  size_t found = 0;
  for (size_t eight = 0; eight < kMapSize; eight += 8) {
    uint64_t any = 0;
    std::memcpy(&any, reached + eight, 8);
    if (any == 0) continue;
    for (size_t i = eight; i < eight + 8; ++i) {
      const uint8_t count = reached[i];
      if (count == 0) continue;
      const int bits = count < 4 ? count - 1 : std::min(34 - __builtin_clz(count), 7);
      const auto bit = static_cast<uint8_t>(1u << bits);
      if (known[i] & bit) continue;
      known[i] = static_cast<uint8_t>(known[i] | bit);
      ++found;
    }
  }
  return found;
}

}  // namespace fp8kv::fuzz
