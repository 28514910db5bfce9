// What files of NEON kernels share: elements of weights and caches, 8 at a time, in two vectors of
// four. Sums have the lanes and the order of AVX2's (cpu_avx2.h), so that both give the same bits.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa/cpu_elements.h"

namespace fp8kv::neon {

inline constexpr int kLanes = 8;

struct Floats {
  float32x4_t low, high;
};

inline uint8x8_t bytes_at(const std::byte* from) {
  return vld1_u8(reinterpret_cast<const uint8_t*>(from));
}

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

// A code's exponent and mantissa, moved into place in an f32, are worth 2^(bias - 127) times the
// value, subnormals included; the multiplication is exact.
template <Fp8Format F>
inline float32x4_t floats_of_fp8(uint32x4_t code) {
  constexpr Fp8Spec spec = fp8_spec(F);
  const uint32x4_t magnitude = vandq_u32(code, vdupq_n_u32(0x7F));
  const uint32x4_t sign = vshlq_n_u32(vshrq_n_u32(code, 7), 31);
  const uint32x4_t placed = vshlq_n_u32(magnitude, 23 - spec.mantissa_bits);
  const float32x4_t factor = vdupq_n_f32(float_from_bits((254u - spec.bias) << 23));
  uint32x4_t value = vreinterpretq_u32_f32(vmulq_f32(vreinterpretq_f32_u32(placed), factor));
  if constexpr (spec.fnuz) {
    const uint32x4_t nan = vceqq_u32(code, vdupq_n_u32(0x80));
    value = vorrq_u32(value, vandq_u32(nan, vdupq_n_u32(0x7FC00000)));
  } else {
    const uint32x4_t special = vcgtq_u32(magnitude, vdupq_n_u32(spec.max_code));
    value = vbslq_u32(special, vorrq_u32(placed, vdupq_n_u32(0x7F800000)), value);
  }
  return vreinterpretq_f32_u32(vorrq_u32(value, sign));
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
    const uint16x8_t words = vmovl_u8(bytes_at(from));
    return {floats_of_fp8<F>(vmovl_u16(vget_low_u16(words))),
            floats_of_fp8<F>(vmovl_high_u16(words))};
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

// Always in this order.
inline float sum_of(const Floats& x) {
  const float32x4_t four = vaddq_f32(x.low, x.high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

}  // namespace fp8kv::neon

#endif
