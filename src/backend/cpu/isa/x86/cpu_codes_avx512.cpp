// Codes of quantised weights by AVX-512: a code picks a number from a table in registers. Products
// of bf16 need AVX512_BF16.
#if defined(__x86_64__)

#include "backend/cpu/isa/x86/cpu_code_tables_avx512.h"

namespace fp8kv {
namespace {

using avx512::leave_no_subnormal;
using avx512::leaves_no_subnormal;
using avx512::NibbleRun;
using avx512::NibbleSums;
using avx512::rounded;
using avx512::table_of_16;
using avx512::worth;

FP8KV_AVX512 void fill(const float* values, float zero, float scale, bool bf16, CodeTable& table) {
  for (size_t code = 0; code < table.low.size(); code += avx512::kLanes) {
    const __m512i made = rounded(worth(values + code, zero, scale), bf16);
    const auto to = [code](auto& bytes) { return reinterpret_cast<__m128i*>(bytes.data() + code); };
    _mm_store_si128(to(table.low), _mm512_cvtepi32_epi8(made));
    _mm_store_si128(to(table.high), _mm512_cvtepi32_epi8(_mm512_srli_epi32(made, 8)));
  }
}

FP8KV_AVX512_BF16 void fill_fast(const float* values, float zero, float scale, bool bf16,
                                 CodeTable& table) {
  if (!bf16 || !leaves_no_subnormal(scale)) return fill(values, zero, scale, bf16, table);
  for (size_t code = 0; code < table.low.size(); code += 2 * avx512::kLanes) {
    const auto made = (__m512i)_mm512_cvtne2ps_pbh(
        worth(values + code + avx512::kLanes, zero, scale), worth(values + code, zero, scale));
    const auto to = [code](auto& bytes) { return reinterpret_cast<__m256i*>(bytes.data() + code); };
    _mm256_store_si256(to(table.low), _mm512_cvtepi16_epi8(made));
    _mm256_store_si256(to(table.high), _mm512_cvtepi16_epi8(_mm512_srli_epi16(made, 8)));
  }
}

// 32 numbers of 16 bits: each byte becomes a word, and the two halves of the word have its two
// codes in their lowest bits.
FP8KV_AVX512 [[gnu::always_inline]] inline __m512i look_up(__m512i table, const uint8_t* codes) {
  const __m512i pairs =
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  return _mm512_permutexvar_epi16(_mm512_or_si512(pairs, _mm512_slli_epi32(pairs, 12)), table);
}

FP8KV_AVX512 void nibbles(const uint8_t* codes, int64_t count, const float* values, float zero,
                          float scale, bool bf16, uint16_t* to) {
  const __m512i table = table_of_16(values, zero, scale, bf16);
  const int64_t whole = count / kNibbleStep * kNibbleStep;
  for (int64_t i = 0; i < whole; i += kNibbleStep) {
    _mm512_storeu_si512(to + i, look_up(table, codes + i / 2));
  }
  if (whole == count) return;
  alignas(64) uint16_t all[32];
  _mm512_store_si512(all, table);
  for (int64_t i = whole; i < count; ++i) to[i] = all[codes[i / 2] >> (i % 2 * 4) & 15];
}

template <int Rows>
FP8KV_AVX512_BF16 void nibble_dots(const ScaledRows& rows, const float* x, int64_t x_stride,
                                   int64_t count, float* out) {
  const bool fast = leave_no_subnormal(rows, count);
  NibbleSums<Rows> sums;
  for (int64_t i = 0; i * rows.run < count; ++i) {
    const NibbleRun run(rows, i, count, fast);
    for (int64_t k = run.begin; k < run.end; k += kNibbleStep) {
#pragma GCC unroll 4
      for (int w = 0; w < kDotWeights; ++w) {
        sums.add(w, look_up(run.tables[w], rows.codes[w] + k / 2), x + k / 2, x_stride);
      }
    }
  }
  sums.write(out);
}

// 16 codes as the low bits of words.
FP8KV_AVX512 [[gnu::always_inline]] inline __m512i spread(const uint8_t* codes) {
  const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const __m512i by = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  return _mm512_srlv_epi32(_mm512_permutexvar_epi32(at, _mm512_castsi128_si512(eight)), by);
}

template <int Rows>
FP8KV_AVX512 void nibble_dots_f16(const ScaledRows& rows, const float* x, int64_t x_stride,
                                  int64_t count, float* out) {
  __m512 sum[kDotWeights][Rows];
#pragma GCC unroll 4
  for (int w = 0; w < kDotWeights; ++w) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[w][r] = _mm512_setzero_ps();
  }
  for (int64_t i = 0, begin = 0; begin < count; ++i, begin += rows.run) {
    const int64_t end = run_end(rows.run, begin, count);
    __m512 tables[kDotWeights];
#pragma GCC unroll 4
    for (int w = 0; w < kDotWeights; ++w) {
      tables[w] = _mm512_cvtph_ps(_mm512_cvtps_ph(
          worth(rows.values, rows.zeros[w][i], rows.scales[w][i]), _MM_FROUND_TO_NEAREST_INT));
    }
    for (const uint8_t* codes : rows.codes) fetch_ahead(codes, begin / 2, end / 2, count / 2);
    for (int64_t k = begin; k < end; k += avx512::kLanes) {
#pragma GCC unroll 4
      for (int w = 0; w < kDotWeights; ++w) {
        // An index counts by its low four bits.
        const __m512 weight = _mm512_permutexvar_ps(spread(rows.codes[w] + k / 2), tables[w]);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          sum[w][r] = _mm512_fmadd_ps(weight, _mm512_loadu_ps(x + r * x_stride + k), sum[w][r]);
        }
      }
    }
  }
  for (int w = 0; w < kDotWeights; ++w) {
    for (int r = 0; r < Rows; ++r) out[r * kDotWeights + w] = _mm512_reduce_add_ps(sum[w][r]);
  }
}

constexpr CodeKernels::ScaledDots kNibbleDots[kMaxDotRows] = {nibble_dots<1>, nibble_dots<2>,
                                                              nibble_dots<3>, nibble_dots<4>};
constexpr CodeKernels::ScaledDots kNibbleDotsF16[kMaxDotRows] = {
    nibble_dots_f16<1>, nibble_dots_f16<2>, nibble_dots_f16<3>, nibble_dots_f16<4>};

}  // namespace

const CodeKernels kAvx512Codes = {
    .fill = fill, .bytes = look_up_each, .nibbles = nibbles, .nibble_dots_f16 = kNibbleDotsF16};
const CodeKernels kAvx512Bf16Codes = {.fill = fill_fast,
                                      .bytes = look_up_each,
                                      .nibbles = nibbles,
                                      .nibble_dots = kNibbleDots,
                                      .nibble_dots_f16 = kNibbleDotsF16};

}  // namespace fp8kv

#endif
