// Elements of weights and caches, 8 at a time, for files of AVX2 kernels alone: this header defines
// a target for their functions.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "backend/cpu/isa/common/cpu_elements.h"

// The target is given function by function: compiling whole files for AVX2 would leak AVX2 code
// into inline library functions that other processors run.
#define FP8KV_AVX2 [[gnu::target("avx2,fma,f16c")]]

namespace fp8kv::avx2 {

inline constexpr int kLanes = 8;

// Element::load for 8 elements.
template <typename Element>
struct Vector;

template <>
struct Vector<F32Element> {
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256 load(const std::byte* from) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  }
};

template <>
struct Vector<F16Element> {
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256 load(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
};

template <>
struct Vector<Bf16Element> {
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256 load(const std::byte* from) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
  }
};

// A code's exponent and mantissa, moved into place in an f32, are worth 2^(bias - 127) times the
// value, subnormals included; the multiplication is exact.
template <Fp8Format F>
struct Vector<Fp8Element<F>> {
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256 load(const std::byte* from) {
    constexpr Fp8Spec spec = fp8_spec(F);
    const __m256i code =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7F));
    const __m256i sign =
        _mm256_and_si256(_mm256_slli_epi32(code, 24), _mm256_set1_epi32(INT32_MIN));
    const __m256i placed = _mm256_slli_epi32(magnitude, 23 - spec.mantissa_bits);
    const __m256 factor = _mm256_set1_ps(float_from_bits((254u - spec.bias) << 23));
    __m256i value = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(placed), factor));
    if constexpr (spec.fnuz) {
      const __m256i nan = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(0x80));
      value = _mm256_or_si256(value, _mm256_and_si256(nan, _mm256_set1_epi32(0x7FC00000)));
    } else {
      const __m256i special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(spec.max_code));
      value = _mm256_blendv_epi8(value, _mm256_or_si256(placed, _mm256_set1_epi32(0x7F800000)),
                                 special);
    }
    return _mm256_castsi256_ps(_mm256_or_si256(value, sign));
  }
};

// Adds the lanes, always in this order.
FP8KV_AVX2 [[gnu::always_inline]] inline float sum_of(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace fp8kv::avx2

#endif
