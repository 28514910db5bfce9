// The element types of weights and caches, one value at a time, at any alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

namespace fp8kv {

struct F32Element {
  static constexpr int kBytes = 4;
  static float load(const std::byte* from) {
    float x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(float x, float /*scale*/, std::byte* to) { std::memcpy(to, &x, sizeof x); }
};

struct F16Element {
  static constexpr int kBytes = 2;
  static float load(const std::byte* from) {
    uint16_t code;
    std::memcpy(&code, from, sizeof code);
    return f16_to_float(code);
  }
  static void store(float x, float /*scale*/, std::byte* to) {
    const uint16_t code = f16_from_float(x);
    std::memcpy(to, &code, sizeof code);
  }
};

struct Bf16Element {
  static constexpr int kBytes = 2;
  static float load(const std::byte* from) {
    uint16_t code;
    std::memcpy(&code, from, sizeof code);
    return bf16_to_float(code);
  }
  static void store(float x, float /*scale*/, std::byte* to) {
    const uint16_t code = bf16_from_float(x);
    std::memcpy(to, &code, sizeof code);
  }
};

// Loads the code's value without the scale, which is folded in elsewhere.
template <Fp8Format F>
struct Fp8Element {
  static constexpr int kBytes = 1;
  static constexpr Fp8Format kFormat = F;
  static float load(const std::byte* from) { return fp8_decode<F>(static_cast<uint8_t>(*from)); }
  static void store(float x, float scale, std::byte* to) {
    *to = static_cast<std::byte>(fp8_encode<F>(x / scale));
  }
};

}  // namespace fp8kv
