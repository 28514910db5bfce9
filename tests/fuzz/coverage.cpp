#include "coverage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

// A byte for each hashed pair of consecutive places.
namespace {
constexpr size_t kMapSize = size_t{1} << 16;
alignas(8) uint8_t reached[kMapSize];
uint8_t known[kMapSize];  // classes of counts seen so far, one bit each
bool counting = true;
__attribute__((tls_model("initial-exec"))) thread_local uintptr_t last_place;
}  // namespace

extern "C" void __sanitizer_cov_trace_pc();
extern "C" void __sanitizer_cov_trace_pc() {
  if (!counting) return;
  const auto base = reinterpret_cast<uintptr_t>(&__sanitizer_cov_trace_pc);
  const uintptr_t place = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - base;
  const uintptr_t mixed = place * 0x9E3779B97F4A7C15u >> 40;
  uint8_t& count = reached[(mixed ^ last_place) % kMapSize];
  if (count < 255) ++count;
  last_place = mixed >> 1;
}

namespace fp8kv::fuzz {

void begin_counting() {
  std::memset(reached, 0, kMapSize);
  last_place = 0;
  counting = true;
}

void stop_counting() {
  counting = false;
}

namespace {

// The class of each count, as a bit: 1, 2, 3, 4-7, 8-15 and so on, as AFL has them.
constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (unsigned count = 1; count < 256; ++count) {
    const int bit = count < 4 ? static_cast<int>(count) - 1 : std::bit_width(count);
    classes[count] = static_cast<uint8_t>(1u << std::min(bit, 7));
  }
  return classes;
}();

}  // namespace

size_t take_new() {
  size_t found = 0;
  for (size_t eight = 0; eight < kMapSize; eight += 8) {
    uint64_t any = 0;
    std::memcpy(&any, reached + eight, 8);
    if (any == 0) continue;
    for (size_t i = eight; i < eight + 8; ++i) reached[i] = kClasses[reached[i]];
    uint64_t now = 0, before = 0;
    std::memcpy(&now, reached + eight, 8);
    std::memcpy(&before, known + eight, 8);
    const uint64_t fresh = now & ~before;
    if (fresh == 0) continue;
    found += static_cast<size_t>(std::popcount(fresh));
    before |= now;
    std::memcpy(known + eight, &before, 8);
  }
  return found;
}

}  // namespace fp8kv::fuzz
