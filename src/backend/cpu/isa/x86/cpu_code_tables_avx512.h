// Tables of codes by AVX-512, and sums of products with codes of four bits. For files of kernels
// alone; see cpu_avx512.h.
#pragma once

#if defined(__x86_64__)

#include "backend/cpu/isa/common/cpu_code_kernels.h"
#include "backend/cpu/isa/x86/cpu_avx512.h"

#define FP8KV_AVX512_BF16 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]]
#define FP8KV_AVX512_VBMI_BF16 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi,avx2,fma,f16c")]]

namespace fp8kv::avx512 {

// bf16_from_float and f16_from_float of 16 values, in the low halves of words.
FP8KV_AVX512 [[gnu::always_inline]] inline __m512i rounded(__m512 values, bool bf16) {
  if (!bf16) return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), even);
  const __m512i high = _mm512_srli_epi32(sum, 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(high, nan, _mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
}

FP8KV_AVX512 [[gnu::always_inline]] inline __m512 worth(const float* values, float zero,
                                                        float scale) {
  return _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(values), _mm512_set1_ps(zero)),
                       _mm512_set1_ps(scale));
}

// With a larger scale, no code decodes to a subnormal number: every nonzero code gives at least
// 2^-17 times its scale. The processor's own conversion to bf16 would flush subnormals to 0.
inline constexpr float kSubnormalScale = 0x1p-100f;

inline bool leaves_no_subnormal(float scale) {
  return __builtin_fabsf(scale) > kSubnormalScale;
}

// Whether all scales of four rows avoid subnormal numbers.
FP8KV_AVX512 inline bool leave_no_subnormal(const ScaledRows& rows, int64_t count) {
  const int64_t groups = (count + rows.run - 1) / rows.run;
  __mmask16 small = 0;
  for (const float* scales : rows.scales) {
    for (int64_t i = 0; i < groups; i += kLanes) {
      const int64_t left = groups - i;
      const auto there = static_cast<__mmask16>(left >= kLanes ? 0xFFFF : (1 << left) - 1);
      const __m512 magnitudes = _mm512_abs_ps(_mm512_maskz_loadu_ps(there, scales + i));
      small |=
          _mm512_mask_cmp_ps_mask(there, magnitudes, _mm512_set1_ps(kSubnormalScale), _CMP_NGT_UQ);
    }
  }
  return small == 0;
}

// The numbers of 16 codes, twice: an index counts by its low five bits, and codes have only four.
FP8KV_AVX512 [[gnu::always_inline]] inline __m512i table_of_16(const float* values, float zero,
                                                               float scale, bool bf16) {
  const __m512i made = rounded(worth(values, zero, scale), bf16);
  return _mm512_broadcast_i64x4(_mm512_cvtepi32_epi16(made));
}

// Tables of four rows in bf16. `fast`: uses the processor's own conversion, for two rows at once.
FP8KV_AVX512_BF16 [[gnu::always_inline]] inline void tables_of_16(const ScaledRows& rows, int64_t i,
                                                                  bool fast,
                                                                  __m512i (&to)[kDotWeights]) {
  if (fast) {
#pragma GCC unroll 2
    for (int w = 0; w < kDotWeights; w += 2) {
      const auto two = (__m512i)_mm512_cvtne2ps_pbh(
          worth(rows.values, rows.zeros[w + 1][i], rows.scales[w + 1][i]),
          worth(rows.values, rows.zeros[w][i], rows.scales[w][i]));
      to[w] = _mm512_shuffle_i64x2(two, two, 0x44);
      to[w + 1] = _mm512_shuffle_i64x2(two, two, 0xEE);
    }
  } else {
#pragma GCC unroll 4
    for (int w = 0; w < kDotWeights; ++w) {
      to[w] = table_of_16(rows.values, rows.zeros[w][i], rows.scales[w][i], true);
    }
  }
}

// A run of columns of four rows, and the values of their codes.
struct NibbleRun {
  int64_t begin;
  int64_t end;
  __m512i tables[kDotWeights];

  FP8KV_AVX512_BF16
  [[gnu::always_inline]] NibbleRun(const ScaledRows& rows, int64_t i, int64_t count, bool fast)
      : begin(i * rows.run), end(run_end(rows.run, begin, count)) {
    tables_of_16(rows, i, fast, tables);
    for (const uint8_t* codes : rows.codes) fetch_ahead(codes, begin / 2, end / 2, count / 2);
  }
};

// Sums of four rows of weights with some rows of x, which hold bf16 pairs.
template <int Rows>
struct NibbleSums {
  __m512 sum[kDotWeights][Rows];

  FP8KV_AVX512_BF16 NibbleSums() {
    for (auto& of_weight : sum) {
      for (__m512& each : of_weight) each = _mm512_setzero_ps();
    }
  }
  // Adds the products of kNibbleStep numbers of a row of weights.
  FP8KV_AVX512_BF16 [[gnu::always_inline]] void add(int w, __m512i weight, const float* x,
                                                    int64_t x_stride) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const auto pairs = (__m512bh)_mm512_loadu_si512(x + r * x_stride);
      sum[w][r] = _mm512_dpbf16_ps(sum[w][r], (__m512bh)weight, pairs);
    }
  }
  FP8KV_AVX512_BF16 void write(float* out) const {
    for (int w = 0; w < kDotWeights; ++w) {
      for (int r = 0; r < Rows; ++r) out[r * kDotWeights + w] = _mm512_reduce_add_ps(sum[w][r]);
    }
  }
};

}  // namespace fp8kv::avx512

#endif
