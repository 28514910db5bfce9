// The 8-bit floating-point formats of KV caches: sign, exponent, mantissa from the top bit down.
//
//   format     exp man bias  max    min normal  min subnormal  inf        NaN         -0
//   e4m3fn      4   3    7   448    2^-6        2^-9           none       0x7F 0xFF   0x80
//   e4m3fnuz    4   3    8   240    2^-7        2^-10          none       0x80        none
//   e5m2        5   2   15   57344  2^-14       2^-16          0x7C 0xFC  others      0x80
//   e5m2fnuz    5   2   16   57344  2^-15       2^-17          none       0x80        none
//
// If a byte is finite in an fn format and in its fnuz twin, its fn value is exactly twice the fnuz
// value. So doubling turns an fn scale into an fnuz scale without loss.
// Source: OCP 8-bit Floating Point Specification 1.0 (fn, e5m2); AMD CDNA3 ISA (fnuz).
#pragma once

#include <cstdint>

#include "core/numbers/half.h"
#include "core/numbers/hd.h"

namespace fp8kv {

enum class Fp8Format : uint8_t { e4m3fn, e4m3fnuz, e5m2, e5m2fnuz };

struct Fp8Spec {
  int mantissa_bits;
  int bias;
  bool fnuz;         // finite, no negative zero, NaN is 0x80
  uint8_t max_code;  // largest finite magnitude
  float max;         // the value of max_code
  float min_normal;
  float min_subnormal;
};

FP8KV_HD constexpr Fp8Spec fp8_spec(Fp8Format format) {
  switch (format) {
    case Fp8Format::e4m3fn:
      return {3, 7, false, 0x7E, 448.0f, 0x1p-6f, 0x1p-9f};
    case Fp8Format::e4m3fnuz:
      return {3, 8, true, 0x7F, 240.0f, 0x1p-7f, 0x1p-10f};
    case Fp8Format::e5m2:
      return {2, 15, false, 0x7B, 57344.0f, 0x1p-14f, 0x1p-16f};
    case Fp8Format::e5m2fnuz:
      break;
  }
  return {2, 16, true, 0x7F, 57344.0f, 0x1p-15f, 0x1p-17f};
}

// Rounds x to the nearest code, ties to even.
// Overflow and infinity saturate to the largest finite magnitude. NaN gives NaN. Subnormals are
// kept. A value that rounds to zero keeps its sign, except in fnuz, which has no -0.
// Maximum relative error for normals: 2^-4 (e4m3), 2^-3 (e5m2).
template <Fp8Format F>
FP8KV_HD uint8_t fp8_encode(float x) {
  constexpr Fp8Spec spec = fp8_spec(F);
  constexpr int kShift = 23 - spec.mantissa_bits;
  const uint32_t bits = float_bits(x);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t sign = (bits >> 24) & 0x80u;
  if (magnitude > 0x7F800000u) return static_cast<uint8_t>(spec.fnuz ? 0x80u : sign | 0x7Fu);
  uint32_t code;
  if (magnitude >= float_bits(spec.max)) {
    code = spec.max_code;
  } else if (magnitude >= float_bits(spec.min_normal)) {
    const uint32_t even = (magnitude >> kShift) & 1u;
    const uint32_t rounded = (magnitude + ((1u << (kShift - 1)) - 1u) + even) >> kShift;
    code = rounded - (static_cast<uint32_t>(127 - spec.bias) << spec.mantissa_bits);
  } else {
    // Counts in units of the smallest subnormal. Adding 2^23 rounds to an integer, ties to even. A
    // result of 2^mantissa_bits is the code of the smallest normal.
    const float units = float_from_bits(magnitude) / spec.min_subnormal;
    code = float_bits(units + 8388608.0f) & 0x7FFFFFu;
  }
  if (spec.fnuz && code == 0) return 0;
  return static_cast<uint8_t>(sign | code);
}

// Exact.
template <Fp8Format F>
FP8KV_HD float fp8_decode(uint8_t byte) {
  constexpr Fp8Spec spec = fp8_spec(F);
  const uint32_t sign = static_cast<uint32_t>(byte & 0x80u) << 24;
  const uint32_t code = byte & 0x7Fu;
  if (spec.fnuz ? byte == 0x80u : code > spec.max_code) {
    const bool infinite = F == Fp8Format::e5m2 && code == 0x7Cu;
    return float_from_bits((spec.fnuz ? 0u : sign) | (infinite ? 0x7F800000u : 0x7FC00000u));
  }
  if (code < (1u << spec.mantissa_bits)) {
    return float_from_bits(sign | float_bits(static_cast<float>(code) * spec.min_subnormal));
  }
  const uint32_t rebias = static_cast<uint32_t>(127 - spec.bias) << 23;
  return float_from_bits(sign | ((code << (23 - spec.mantissa_bits)) + rebias));
}

}  // namespace fp8kv
