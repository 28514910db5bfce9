// f16 and bf16 to and from f32, in plain integer arithmetic so that every backend agrees.
#pragma once

#include <cstdint>

#include "core/numbers/hd.h"

namespace fp8kv {

FP8KV_HD uint32_t float_bits(float x) {
  return __builtin_bit_cast(uint32_t, x);  // std::bit_cast does not compile for devices
}

FP8KV_HD float float_from_bits(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// Rounds to nearest, ties to even. Overflow gives infinity; NaN stays NaN (quiet), sign kept.
FP8KV_HD uint16_t bf16_from_float(float x) {
  const uint32_t bits = float_bits(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Exact.
FP8KV_HD float bf16_to_float(uint16_t code) {
  return float_from_bits(static_cast<uint32_t>(code) << 16);
}

// Rounds to nearest, ties to even. Subnormals are kept; |x| >= 65520 gives infinity; NaN stays NaN.
FP8KV_HD uint16_t f16_from_float(float x) {
  const uint32_t bits = float_bits(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 aligns the f16 subnormal unit, 2^-24
    const float aligned = float_from_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (float_bits(aligned) - 0x3F000000u));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// Exact.
FP8KV_HD float f16_to_float(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000u) << 16;
  const uint32_t magnitude = code & 0x7FFFu;
  if (magnitude >= 0x7C00u)
    return float_from_bits(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude < 0x0400u) {  // subnormal: magnitude * 2^-24
    const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
    return float_from_bits(sign | float_bits(value));
  }
  return float_from_bits(sign | ((magnitude << 13) + 0x38000000u));
}

}  // namespace fp8kv
