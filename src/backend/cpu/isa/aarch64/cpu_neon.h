// Elements of weights and caches for files of NEON kernels, 8 at a time, in two vectors of four.
// Sums have the lanes and the order of AVX2's (cpu_avx2.h), so that both give the same bits.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa/common/cpu_elements.h"

namespace fp8kv::neon {

inline constexpr int kLanes = 8;

struct Floats {
  float32x4_t low, high;
};

// Words of 16 bits at any alignment.
inline uint16x8_t words_at(const void* from) {
  return vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(from)));
}

inline Floats floats_of_f16(uint16x8_t codes) {
  const float16x8_t halves = vreinterpretq_f16_u16(codes);
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}

// f16 of 8 values.
inline uint16x8_t halves_of(const Floats& x) {
  return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high));
}

inline Floats floats_of_bf16(uint16x8_t codes) {
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(codes), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(codes, 16))};
}

// fp8 codes as f16. An e5m2 code is the upper byte of an f16. In other formats, exponent and
// mantissa moved into place give 2^(bias - 15) times the value, subnormals included; the
// multiplication is exact.
template <Fp8Format F>
inline Floats floats_of_fp8(uint8x8_t codes) {
  constexpr Fp8Spec spec = fp8_spec(F);
  if constexpr (F == Fp8Format::e5m2) {
    return floats_of_f16(vshll_n_u8(codes, 8));
  } else {
    static_assert(spec.mantissa_bits == 3);
    const int16x8_t placed = vshll_n_s8(vreinterpret_s8_u8(codes), 7);  // two bits of the sign
    const uint16x8_t words = vandq_u16(vreinterpretq_u16_s16(placed), vdupq_n_u16(0xBFFF));
    uint16x8_t nan;
    if constexpr (spec.fnuz) {
      nan = vceqq_u16(words, vdupq_n_u16(0x8000));
    } else {
      nan = vceqq_u16(vorrq_u16(words, vdupq_n_u16(0x8000)), vdupq_n_u16(0xBF80));
    }
    const Floats small = floats_of_f16(vorrq_u16(words, vandq_u16(nan, vdupq_n_u16(0x7E00))));
    constexpr auto kFactor = static_cast<float>(1 << (15 - spec.bias));
    return {vmulq_n_f32(small.low, kFactor), vmulq_n_f32(small.high, kFactor)};
  }
}

// e5m2fnuz uses the exponent that means infinity in f16, so the conversion goes through f32.
inline float32x4_t floats_of_e5m2fnuz(uint32x4_t code) {
  constexpr Fp8Spec spec = fp8_spec(Fp8Format::e5m2fnuz);
  const uint32x4_t placed =
      vshlq_n_u32(vandq_u32(code, vdupq_n_u32(0x7F)), 23 - spec.mantissa_bits);
  const float32x4_t factor = vdupq_n_f32(float_from_bits((254u - spec.bias) << 23));
  const uint32x4_t value = vreinterpretq_u32_f32(vmulq_f32(vreinterpretq_f32_u32(placed), factor));
  const uint32x4_t sign = vshlq_n_u32(vshrq_n_u32(code, 7), 31);
  const uint32x4_t nan = vandq_u32(vceqq_u32(code, vdupq_n_u32(0x80)), vdupq_n_u32(0x7FC00000));
  return vreinterpretq_f32_u32(vorrq_u32(vorrq_u32(value, sign), nan));
}

// Element::load for 8 elements.
template <typename Element>
struct Vector;

template <>
struct Vector<F32Element> {
  static inline Floats load(const std::byte* from) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(from);
    return {vreinterpretq_f32_u8(vld1q_u8(bytes)), vreinterpretq_f32_u8(vld1q_u8(bytes + 16))};
  }
};

template <>
struct Vector<F16Element> {
  static inline Floats load(const std::byte* from) { return floats_of_f16(words_at(from)); }
};

template <>
struct Vector<Bf16Element> {
  static inline Floats load(const std::byte* from) { return floats_of_bf16(words_at(from)); }
};

template <Fp8Format F>
struct Vector<Fp8Element<F>> {
  static inline Floats load(const std::byte* from) {
    const uint8x8_t codes = vld1_u8(reinterpret_cast<const uint8_t*>(from));
    if constexpr (F == Fp8Format::e5m2fnuz) {
      const uint16x8_t words = vmovl_u8(codes);
      return {floats_of_e5m2fnuz(vmovl_u16(vget_low_u16(words))),
              floats_of_e5m2fnuz(vmovl_high_u16(words))};
    } else {
      return floats_of_fp8<F>(codes);
    }
  }
};

inline Floats floats_at(const float* from) {
  return {vld1q_f32(from), vld1q_f32(from + 4)};
}

inline void store(const Floats& x, float* to) {
  vst1q_f32(to, x.low);
  vst1q_f32(to + 4, x.high);
}

// sum + x * y, rounded once.
inline Floats add_product(const Floats& sum, const Floats& x, const Floats& y) {
  return {vfmaq_f32(sum.low, x.low, y.low), vfmaq_f32(sum.high, x.high, y.high)};
}

// Adds the lanes, always in this order.
inline float sum_of(const Floats& x) {
  const float32x4_t four = vaddq_f32(x.low, x.high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

}  // namespace fp8kv::neon

#endif
