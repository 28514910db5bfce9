// Numbers of 8 and 16 bits, and sums rounded in other directions than to the nearest.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace fp8kv::ptx {

// PTX ISA 9.7.9.21: NaN becomes the canonical NaN, ties go to even. f16 and bf16 overflow to
// infinity; FP8 overflows to the largest number (.satfinite).
uint16_t f16_bits(float x);
inline uint16_t bf16_bits(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
uint8_t e4m3_bits(float x);
uint8_t e5m2_bits(float x);

inline float f16_number(uint16_t bits) {
  // In the place of a float's bits, the exponent is too small by the difference of the biases, 112.
  const uint32_t size = (bits & 0x7FFFu) << 13, sign = (bits & 0x8000u) << 16;
  const auto number = std::bit_cast<uint32_t>(std::bit_cast<float>(size) * 0x1p112f);
  const uint32_t infinite = size | 0x7F800000u;  // or not a number
  return std::bit_cast<float>(((bits & 0x7C00u) == 0x7C00u ? infinite : number) | sign);
}
inline float bf16_number(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
float e4m3_number(uint8_t bits);
float e5m2_number(uint8_t bits);

float sum_toward_zero(float a, float b);
// a * b + c, rounded once, down.
float fused_down(float a, float b, float c);

}  // namespace fp8kv::ptx
