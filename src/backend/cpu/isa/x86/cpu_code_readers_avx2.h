// Ways to read codes of quantised weights by AVX2. The values of 8 or 16 codes are looked up in
// registers. An fp8 code's exponent is added to the value of its mantissa. For files of AVX2
// kernels alone; see cpu_avx2.h.
#pragma once

#if defined(__x86_64__)

#include <type_traits>

#include "backend/cpu/isa/common/cpu_code_kernels.h"
#include "backend/cpu/isa/x86/cpu_avx2.h"
#include "core/numbers/half.h"

namespace fp8kv::avx2 {

// Rounds numbers other than NaN to 16 bits, and back.
struct Bf16 {
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256 round(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), even);
    return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(-0x10000)));
  }
  // The 16 bits of rounded numbers, in the low halves of words.
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256i bits(__m256 x) {
    return _mm256_srli_epi32(_mm256_castps_si256(round(x)), 16);
  }
  static float round_each(float x) { return bf16_to_float(bf16_from_float(x)); }
};

struct F16 {
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256 round(__m256 x) {
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256i bits(__m256 x) {
    return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static float round_each(float x) { return f16_to_float(f16_from_float(x)); }
};

// Whether no code becomes NaN, infinite or, in f32 and bf16, subnormal, unless the code itself is
// so. The ways below rely on this.
inline bool is_ordinary(float scale) {
  const float magnitude = scale < 0 ? -scale : scale;
  return magnitude > 0x1p-90f && magnitude < 0x1p90f;
}

// (value - zero) * scale
FP8KV_AVX2 [[gnu::always_inline]] inline __m256 scaled(__m256 value, float zero, float scale) {
  return _mm256_mul_ps(_mm256_sub_ps(value, _mm256_set1_ps(zero)), _mm256_set1_ps(scale));
}

// A table of 16 bytes for each half of a vector.
FP8KV_AVX2 [[gnu::always_inline]] inline __m256i both_halves(__m128i table) {
  return _mm256_broadcastsi128_si256(table);
}

// The low bytes of 8 words.
FP8KV_AVX2 [[gnu::always_inline]] inline __m128i low_bytes(__m128i words) {
  const __m128i low = _mm_and_si128(words, _mm_set1_epi16(0xFF));
  return _mm_packus_epi16(low, low);
}

// Words of 16 bits from two vectors, in their order.
FP8KV_AVX2 [[gnu::always_inline]] inline __m256i packed(__m256i first, __m256i second) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xD8);
}

// Ways to read codes: `begin(rows, w, i)` prepares run i of row w. `special` looks at the codes of
// kStep columns. If it returns 0, `load` decodes kWide columns; if 1, only `load_any` does. If 2,
// only `code` helps, column by column.

// Two tables, of the low and the high bytes.
template <typename To>
struct Nibbles {
  static constexpr int64_t kStep = kNibbleStep, kWide = 32, kPerByte = 2;
  static constexpr bool kF16 = std::is_same_v<To, F16>;

  FP8KV_AVX2 [[gnu::always_inline]] inline void begin(const ScaledRows& rows, int w, int64_t i) {
    begin(rows.values, rows.zeros[w][i], rows.scales[w][i]);
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void begin(const float* values, float zero,
                                                      float scale) {
    const __m256i words = packed(To::bits(scaled(_mm256_loadu_ps(values), zero, scale)),
                                 To::bits(scaled(_mm256_loadu_ps(values + kLanes), zero, scale)));
    const __m256i bytes = _mm256_permute4x64_epi64(
        _mm256_packus_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0xFF)),
                            _mm256_srli_epi16(words, 8)),
        0xD8);
    low = _mm256_permute4x64_epi64(bytes, 0x44);
    high = _mm256_permute4x64_epi64(bytes, 0xEE);
  }
  FP8KV_AVX2 [[gnu::always_inline]] static inline int special(const uint8_t*) { return 0; }

  // The 16-bit numbers of 32 codes, in words. With `kF16` they are in order, else in the order in
  // which unpacking turns them into floats.
  FP8KV_AVX2 [[gnu::always_inline]] inline void look_up(const uint8_t* codes,
                                                        __m256i* words) const {
    const __m256i order =
        kF16 ? _mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 8, 8, 9, 9, 10, 10, 11, 11,  //
                                4, 4, 5, 5, 6, 6, 7, 7, 12, 12, 13, 13, 14, 14, 15, 15)
             : _mm256_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13,  //
                                2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15);
    const __m256i twice = _mm256_shuffle_epi8(
        both_halves(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))), order);
    // The first of a byte's two copies keeps its low bits, the second its high bits.
    const __m256i at =
        _mm256_or_si256(_mm256_and_si256(twice, _mm256_set1_epi16(0x000F)),
                        _mm256_and_si256(_mm256_srli_epi16(twice, 4), _mm256_set1_epi16(0x0F00)));
    const __m256i of_low = _mm256_shuffle_epi8(low, at), of_high = _mm256_shuffle_epi8(high, at);
    words[0] = _mm256_unpacklo_epi8(of_low, of_high);
    words[1] = _mm256_unpackhi_epi8(of_low, of_high);
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load(const uint8_t* codes, __m256* to) const {
    __m256i words[2];
    look_up(codes, words);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if constexpr (kF16) {
        to[2 * i] = _mm256_cvtph_ps(_mm256_castsi256_si128(words[i]));
        to[2 * i + 1] = _mm256_cvtph_ps(_mm256_extracti128_si256(words[i], 1));
      } else {
        const __m256i zero = _mm256_setzero_si256();
        to[2 * i] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, words[i]));
        to[2 * i + 1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, words[i]));
      }
    }
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load_any(const uint8_t* codes, __m256* to) const {
    load(codes, to);
  }
  static uint8_t code(const uint8_t* codes, int64_t k) {
    return codes[k / 2] >> (k % 2 * 4) & 15;
  }

  __m256i low, high;
};

template <typename To>
struct SignedBytes {
  static constexpr int64_t kStep = kByteStep, kWide = kLanes, kPerByte = 1;

  FP8KV_AVX2 [[gnu::always_inline]] inline void begin(const ScaledRows& rows, int w, int64_t i) {
    zero = rows.zeros[w][i];
    scale = rows.scales[w][i];
  }
  FP8KV_AVX2 [[gnu::always_inline]] static inline int special(const uint8_t*) { return 0; }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load(const uint8_t* codes, __m256* to) const {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
    *to = To::round(scaled(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)), zero, scale));
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load_any(const uint8_t* codes, __m256* to) const {
    load(codes, to);
  }
  static uint8_t code(const uint8_t* codes, int64_t k) { return codes[k]; }

  float zero, scale;
};

// The two ways for fp8 codes have no zero points.
struct E4m3ToF16 {
  static constexpr int64_t kStep = kByteStep, kWide = kLanes, kPerByte = 1;

  FP8KV_AVX2 [[gnu::always_inline]] inline void begin(const ScaledRows& rows, int w, int64_t i) {
    scale = rows.scales[w][i];
  }
  FP8KV_AVX2 [[gnu::always_inline]] static inline int special(const uint8_t*) { return 0; }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load(const uint8_t* codes, __m256* to) const {
    using Element = Fp8Element<Fp8Format::e4m3fn>;
    const __m256 value = avx2::Vector<Element>::load(reinterpret_cast<const std::byte*>(codes));
    *to = F16::round(_mm256_mul_ps(value, _mm256_set1_ps(scale)));
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load_any(const uint8_t* codes, __m256* to) const {
    load(codes, to);
  }
  static uint8_t code(const uint8_t* codes, int64_t k) { return codes[k]; }

  float scale;
};

// bf16 has the range of f32, so the exponent of a code can simply be added to the value of its
// mantissa.
struct E4m3ToBf16 {
  static constexpr int64_t kStep = kByteStep, kWide = 16, kPerByte = 1;

  FP8KV_AVX2 [[gnu::always_inline]] inline void begin(const ScaledRows& rows, int w, int64_t i) {
    const float scale = rows.scales[w][i];
    // The values at exponent 0; `load` adds a code's own exponent.
    const __m256i words =
        _mm256_sub_epi32(worth(rows.values + 8, scale), _mm256_set1_epi32(1 << 7));
    small = worth(rows.values, scale);
    const __m128i eight =
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    normal = both_halves(_mm_unpacklo_epi64(low_bytes(eight), low_bytes(_mm_srli_epi16(eight, 8))));
  }
  // Checks 64 codes. Returns 1 if some exponent is 0, and 2 if some code is NaN.
  FP8KV_AVX2 [[gnu::always_inline]] static inline int special(const uint8_t* codes) {
    const __m256i a = above_small(codes), b = above_small(codes + 32);
    // Codes with exponent 0 have wrapped around to values above NaN's.
    const __m256i nan = _mm256_set1_epi8(0x77), most = _mm256_max_epu8(a, b);
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(most, nan), most)) == 0) return 0;
    const __m256i nans = _mm256_or_si256(_mm256_cmpeq_epi8(a, nan), _mm256_cmpeq_epi8(b, nan));
    return _mm256_movemask_epi8(nans) == 0 ? 1 : 2;
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load(const uint8_t* codes, __m256* to) const {
    // Each code twice, in the order in which unpacking turns words into floats.
    const __m256i order = _mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 8, 8, 9, 9, 10, 10, 11, 11,  //
                                           4, 4, 5, 5, 6, 6, 7, 7, 12, 12, 13, 13, 14, 14, 15, 15);
    const __m256i twice = _mm256_shuffle_epi8(
        both_halves(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))), order);
    // Mantissas as indices; the table has the low bytes first.
    const __m256i at = _mm256_or_si256(_mm256_and_si256(twice, _mm256_set1_epi16(0x0707)),
                                       _mm256_set1_epi16(0x0800));
    // Sign and exponent, at the places of a bf16's sign and the low four bits of its exponent.
    const __m256i part =
        _mm256_and_si256(_mm256_srai_epi16(twice, 4), _mm256_set1_epi16(-0x8000 | 0xF << 7));
    const __m256i words = _mm256_add_epi16(_mm256_shuffle_epi8(normal, at), part);
    const __m256i zero = _mm256_setzero_si256();
    to[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, words));
    to[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, words));
  }
  FP8KV_AVX2 [[gnu::always_inline]] inline void load_any(const uint8_t* codes, __m256* to) const {
    load(codes, to);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const auto* from = reinterpret_cast<const __m128i*>(codes + i * kLanes);
      const __m256i code = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from));
      const __m256i sign =
          _mm256_and_si256(_mm256_slli_epi32(code, 24), _mm256_set1_epi32(INT32_MIN));
      const __m256i is_small = _mm256_cmpeq_epi32(_mm256_and_si256(code, _mm256_set1_epi32(0x78)),
                                                  _mm256_setzero_si256());
      // An index counts by its low three bits.
      const __m256i value = _mm256_slli_epi32(_mm256_permutevar8x32_epi32(small, code), 16);
      to[i] = _mm256_blendv_ps(to[i], _mm256_castsi256_ps(_mm256_xor_si256(value, sign)),
                               _mm256_castsi256_ps(is_small));
    }
  }
  static uint8_t code(const uint8_t* codes, int64_t k) {
    return codes[k];
  }

  // The values of 8 codes as 16-bit numbers, in words of 32 bits.
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256i worth(const float* values, float scale) {
    return Bf16::bits(_mm256_mul_ps(_mm256_loadu_ps(values), _mm256_set1_ps(scale)));
  }
  // Magnitudes of 32 codes, minus that of the first code with a nonzero exponent.
  FP8KV_AVX2 [[gnu::always_inline]] static inline __m256i above_small(const uint8_t* codes) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    return _mm256_sub_epi8(_mm256_and_si256(bytes, _mm256_set1_epi8(0x7F)), _mm256_set1_epi8(8));
  }

  __m256i normal, small;
};

}  // namespace fp8kv::avx2

#endif
