// Elements of weights and caches, 16 at a time. For files of AVX-512 kernels alone; see
// cpu_avx512.h.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa/common/cpu_elements.h"
#include "backend/cpu/isa/x86/cpu_avx512.h"

namespace fp8kv::avx512 {

// `load` is Element::load for 16 adjacent elements. `part` reads 16 elements that are packed in
// 32-bit words: element Part of every word, counted from the low end.
template <typename Element>
struct Vector;

template <>
struct Vector<F32Element> {
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 load(const std::byte* from) {
    return _mm512_loadu_ps(from);
  }
  template <int Part>
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 part(__m512 words) {
    return words;
  }
};

template <>
struct Vector<F16Element> {
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 load(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  template <int Part>
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 part(__m512 words) {
    const __m512i bits = _mm512_castps_si512(words);
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(Part == 0 ? bits : _mm512_srli_epi32(bits, 16)));
  }
};

template <>
struct Vector<Bf16Element> {
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 load(const std::byte* from) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
  }
  template <int Part>
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 part(__m512 words) {
    const __m512i bits = _mm512_castps_si512(words);
    return _mm512_castsi512_ps(Part == 0 ? _mm512_slli_epi32(bits, 16)
                                         : _mm512_and_si512(bits, _mm512_set1_epi32(~0xFFFF)));
  }
};

// A code's exponent and mantissa, moved into place in an f32, are worth 2^(bias - 127) times the
// value, subnormals included; the multiplication is exact.
template <Fp8Format F>
struct Vector<Fp8Element<F>> {
  static constexpr Fp8Spec kSpec = fp8_spec(F);
  static constexpr int kShift = 23 - kSpec.mantissa_bits;

  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 load(const std::byte* from) {
    return part<0>(_mm512_castsi512_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))));
  }
  template <int Part>
  FP8KV_AVX512 [[gnu::always_inline]] static inline __m512 part(__m512 words) {
    const __m512i bits = _mm512_castps_si512(words);
    constexpr int kMove = kShift - 8 * Part;
    const __m512i moved =
        kMove >= 0 ? _mm512_slli_epi32(bits, kMove < 0 ? 0 : static_cast<unsigned>(kMove))
                   : _mm512_srli_epi32(bits, kMove < 0 ? static_cast<unsigned>(-kMove) : 0);
    const __m512i placed = _mm512_and_si512(moved, _mm512_set1_epi32(0x7F << kShift));
    const __m512i signs = _mm512_slli_epi32(bits, 24 - 8 * Part);
    const __m512 factor = _mm512_set1_ps(float_from_bits((254u - kSpec.bias) << 23));
    __m512i value = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(placed), factor));
    if constexpr (kSpec.fnuz) {
      const __m512i code = _mm512_and_si512(signs, _mm512_set1_epi32(~0xFFFFFF));
      const __mmask16 nan = _mm512_cmpeq_epi32_mask(code, _mm512_set1_epi32(INT32_MIN));
      value = _mm512_mask_mov_epi32(value, nan, _mm512_set1_epi32(0x7FC00000));
    } else {
      const __mmask16 special =
          _mm512_cmpgt_epi32_mask(placed, _mm512_set1_epi32(kSpec.max_code << kShift));
      value = _mm512_mask_or_epi32(value, special, placed, _mm512_set1_epi32(0x7F800000));
    }
    // value | (signs & 0x80000000)
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(value, signs, _mm512_set1_epi32(INT32_MIN), 0xF8));
  }
};

// fp8_encode<F>(x) for 16 values, in the low bytes of 32-bit words.
template <Fp8Format F>
FP8KV_AVX512 [[gnu::always_inline]] inline __m512i encode(__m512 x) {
  constexpr Fp8Spec spec = fp8_spec(F);
  constexpr int kShift = 23 - spec.mantissa_bits;
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(magnitude, kShift), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(magnitude, even),
                                         _mm512_set1_epi32((1 << (kShift - 1)) - 1)),
                        kShift);
  __m512i code =
      _mm512_sub_epi32(rounded, _mm512_set1_epi32((127 - spec.bias) << spec.mantissa_bits));
  // The magnitude in units of the smallest subnormal, a power of two.
  const __m512 units =
      _mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(1 / spec.min_subnormal));
  const __m512i subnormal =
      _mm512_and_si512(_mm512_castps_si512(_mm512_add_ps(units, _mm512_set1_ps(8388608.0f))),
                       _mm512_set1_epi32(0x7FFFFF));
  const auto bits_of = [](float value) { return static_cast<int>(float_bits(value)); };
  const __mmask16 small =
      _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(bits_of(spec.min_normal)));
  const __mmask16 large = _mm512_cmpge_epi32_mask(magnitude, _mm512_set1_epi32(bits_of(spec.max)));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
  code = _mm512_mask_mov_epi32(code, small, subnormal);
  code = _mm512_mask_mov_epi32(code, large, _mm512_set1_epi32(spec.max_code));
  if constexpr (spec.fnuz) {
    const __mmask16 signed_codes = _mm512_test_epi32_mask(code, code);  // there is no -0
    code = _mm512_mask_or_epi32(code, signed_codes, code, sign);
    return _mm512_mask_mov_epi32(code, nan, _mm512_set1_epi32(0x80));
  } else {
    code = _mm512_mask_mov_epi32(code, nan, _mm512_set1_epi32(0x7F));
    return _mm512_or_si512(code, sign);
  }
}

}  // namespace fp8kv::avx512

#endif
