// Codes of quantised weights by AVX-512: a code picks a number from a table in registers. Products
// of bf16 need AVX512_BF16, and bytes AVX512_VBMI.
#if defined(__x86_64__)

#include "backend/cpu/isa/cpu_avx512.h"
#include "backend/cpu/isa/cpu_code_kernels.h"

#define FP8KV_AVX512_BF16 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]]
#define FP8KV_AVX512_VBMI_BF16 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi,avx2,fma,f16c")]]

namespace fp8kv {
namespace {

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

FP8KV_AVX512 void fill(const float* values, float zero, float scale, bool bf16, CodeTable& table) {
  for (size_t code = 0; code < table.low.size(); code += avx512::kLanes) {
    const __m512i made = rounded(worth(values + code, zero, scale), bf16);
    const auto to = [code](auto& bytes) { return reinterpret_cast<__m128i*>(bytes.data() + code); };
    _mm_store_si128(to(table.low), _mm512_cvtepi32_epi8(made));
    _mm_store_si128(to(table.high), _mm512_cvtepi32_epi8(_mm512_srli_epi32(made, 8)));
  }
}

// Whether no code is worth a subnormal number, which the processor's own conversion to bf16 takes
// for 0: one that is not 0 is worth 2^-17 times its scale at least.
bool leaves_no_subnormal(float scale) {
  return __builtin_fabsf(scale) > 0x1p-100f;
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

// The numbers of 16 codes, twice: an index counts by its low five bits, of which codes have four.
FP8KV_AVX512 [[gnu::always_inline]] inline __m512i table_of_16(const float* values, float zero,
                                                               float scale, bool bf16) {
  const __m512i made = rounded(worth(values, zero, scale), bf16);
  return _mm512_broadcast_i64x4(_mm512_cvtepi32_epi16(made));
}

// 32 numbers of 16 bits: a byte becomes a word, whose halves have its two codes lowest.
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

// Those of four rows in bf16, by the processor's own conversion where it is right.
FP8KV_AVX512_BF16 [[gnu::always_inline]] inline void tables_of_16(const ScaledRows& rows, int64_t i,
                                                                  __m512i (&to)[kDotWeights]) {
  bool fast = true;
  for (const float* scales : rows.scales) fast = fast && leaves_no_subnormal(scales[i]);
  if (fast) {
#pragma GCC unroll 4
    for (int w = 0; w < kDotWeights; ++w) {
      const __m512 values = worth(rows.values, rows.zeros[w][i], rows.scales[w][i]);
      to[w] = _mm512_broadcast_i64x4((__m256i)_mm512_cvtneps_pbh(values));
    }
  } else {
#pragma GCC unroll 4
    for (int w = 0; w < kDotWeights; ++w) {
      to[w] = table_of_16(rows.values, rows.zeros[w][i], rows.scales[w][i], true);
    }
  }
}

template <int Rows>
FP8KV_AVX512_BF16 void nibble_dots(const ScaledRows& rows, const float* x, int64_t x_stride,
                                   int64_t count, float* out) {
  __m512 sum[kDotWeights][Rows];
#pragma GCC unroll 4
  for (int w = 0; w < kDotWeights; ++w) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[w][r] = _mm512_setzero_ps();
  }
  for (int64_t i = 0, begin = 0; begin < count; ++i, begin += rows.run) {
    const int64_t end = run_end(rows.run, begin, count);
    __m512i tables[kDotWeights];
    tables_of_16(rows, i, tables);
    for (const uint8_t* codes : rows.codes) fetch_ahead(codes, begin / 2, end / 2, count / 2);
    for (int64_t k = begin; k < end; k += kNibbleStep) {
#pragma GCC unroll 4
      for (int w = 0; w < kDotWeights; ++w) {
        const auto weight = (__m512bh)look_up(tables[w], rows.codes[w] + k / 2);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const auto pairs = (__m512bh)_mm512_loadu_si512(x + r * x_stride + k / 2);
          sum[w][r] = _mm512_dpbf16_ps(sum[w][r], weight, pairs);
        }
      }
    }
  }
  for (int w = 0; w < kDotWeights; ++w) {
    for (int r = 0; r < Rows; ++r) out[r * kDotWeights + w] = _mm512_reduce_add_ps(sum[w][r]);
  }
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

// 64 numbers of 16 bits, the first 32 in `first`.
struct Looked {
  __m512i first;
  __m512i second;
};

FP8KV_AVX512_VBMI_BF16 [[gnu::always_inline]] inline __m512i look_up_bytes(
    const std::array<uint8_t, 256>& table, __m512i codes, __mmask64 upper) {
  const uint8_t* from = table.data();
  // An index counts by its low seven bits.
  const __m512i low =
      _mm512_permutex2var_epi8(_mm512_load_si512(from), codes, _mm512_load_si512(from + 64));
  const __m512i high =
      _mm512_permutex2var_epi8(_mm512_load_si512(from + 128), codes, _mm512_load_si512(from + 192));
  return _mm512_mask_mov_epi8(low, upper, high);
}

// The same of a table whose upper half is its lower half with the bits `other` changed.
FP8KV_AVX512_VBMI_BF16 [[gnu::always_inline]] inline __m512i look_up_half(
    const std::array<uint8_t, 256>& table, __m512i codes, __m512i other) {
  const uint8_t* from = table.data();
  const __m512i low =
      _mm512_permutex2var_epi8(_mm512_load_si512(from), codes, _mm512_load_si512(from + 64));
  return _mm512_ternarylogic_epi32(low, codes, other, 0x78);  // low ^ (codes & other)
}

template <bool Mirrored>
FP8KV_AVX512_VBMI_BF16 [[gnu::always_inline]] inline Looked look_up(const CodeTable& table,
                                                                    const uint8_t* codes) {
  // Unpacking takes 8 bytes of each 16: so the first 32 codes have to be there.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i all = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(codes));
  __m512i low, high;
  if constexpr (Mirrored) {
    const uint8_t* from = table.low.data();
    low = _mm512_permutex2var_epi8(_mm512_load_si512(from), all, _mm512_load_si512(from + 64));
    high = look_up_half(table.high, all, _mm512_set1_epi8(static_cast<char>(0x80)));
  } else {
    const __mmask64 upper = _mm512_movepi8_mask(all);
    low = look_up_bytes(table.low, all, upper);
    high = look_up_bytes(table.high, all, upper);
  }
  return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
}

FP8KV_AVX512_VBMI_BF16 void bytes(const uint8_t* codes, int64_t count, const CodeTable& table,
                                  uint16_t* to) {
  const int64_t whole = count / kByteStep * kByteStep;
  for (int64_t i = 0; i < whole; i += kByteStep) {
    const Looked looked = look_up<false>(table, codes + i);
    _mm512_storeu_si512(to + i, looked.first);
    _mm512_storeu_si512(to + i + 32, looked.second);
  }
  look_up_each(codes + whole, count - whole, table, to + whole);
}

// Rows [First, First + Count) of them. `Shared`: all have the tables of the first. So few that the
// tables stay in registers, eight for a row, or four where they are mirrored.
template <int Rows, int First, int Count, bool Shared, bool Mirrored>
FP8KV_AVX512_VBMI_BF16 void byte_dots_of(const ByteRows& rows, const float* x, int64_t x_stride,
                                         int64_t count, float* out) {
  __m512 sum[Count][Rows];
#pragma GCC unroll 4
  for (int w = 0; w < Count; ++w) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[w][r] = _mm512_setzero_ps();
  }
  for (int64_t i = 0, begin = 0; begin < count; ++i, begin += rows.run) {
    const int64_t end = run_end(rows.run, begin, count);
    for (int64_t k = begin; k < end; k += kByteStep) {
#pragma GCC unroll 4
      for (int w = 0; w < Count; ++w) {
        const uint8_t* codes = rows.codes[First + w] + k;
        fetch_ahead(rows.codes[First + w], k, count);
        const Looked looked = look_up<Mirrored>(rows.tables[Shared ? 0 : First + w][i], codes);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const float* pairs = x + r * x_stride + k / 2;
          sum[w][r] = _mm512_dpbf16_ps(sum[w][r], (__m512bh)looked.first,
                                       (__m512bh)_mm512_loadu_si512(pairs));
          sum[w][r] = _mm512_dpbf16_ps(sum[w][r], (__m512bh)looked.second,
                                       (__m512bh)_mm512_loadu_si512(pairs + avx512::kLanes));
        }
      }
    }
  }
  for (int w = 0; w < Count; ++w) {
    for (int r = 0; r < Rows; ++r) {
      out[r * kDotWeights + First + w] = _mm512_reduce_add_ps(sum[w][r]);
    }
  }
}

template <int Rows, bool Mirrored>
FP8KV_AVX512_VBMI_BF16 void byte_dots_by(const ByteRows& rows, const float* x, int64_t x_stride,
                                         int64_t count, float* out) {
  bool shared = true;
  for (const CodeTable* tables : rows.tables) shared = shared && tables == rows.tables[0];
  constexpr bool kAtOnce = Mirrored && Rows <= 2;
  if (shared) {
    byte_dots_of<Rows, 0, kDotWeights, true, Mirrored>(rows, x, x_stride, count, out);
  } else if (kAtOnce) {
    byte_dots_of<Rows, 0, kDotWeights, false, Mirrored>(rows, x, x_stride, count, out);
  } else {
    byte_dots_of<Rows, 0, 2, false, Mirrored>(rows, x, x_stride, count, out);
    byte_dots_of<Rows, 2, 2, false, Mirrored>(rows, x, x_stride, count, out);
  }
}

template <int Rows>
FP8KV_AVX512_VBMI_BF16 void byte_dots(const ByteRows& rows, const float* x, int64_t x_stride,
                                      int64_t count, float* out) {
  return (rows.mirrored ? byte_dots_by<Rows, true> : byte_dots_by<Rows, false>)(rows, x, x_stride,
                                                                                count, out);
}

constexpr CodeKernels::ScaledDots kNibbleDots[kMaxDotRows] = {nibble_dots<1>, nibble_dots<2>,
                                                              nibble_dots<3>, nibble_dots<4>};
constexpr CodeKernels::ScaledDots kNibbleDotsF16[kMaxDotRows] = {
    nibble_dots_f16<1>, nibble_dots_f16<2>, nibble_dots_f16<3>, nibble_dots_f16<4>};
constexpr CodeKernels::ByteDots kByteDots[kMaxDotRows] = {byte_dots<1>, byte_dots<2>, byte_dots<3>,
                                                          byte_dots<4>};

}  // namespace

const CodeKernels kAvx512Codes = {
    .fill = fill, .bytes = look_up_each, .nibbles = nibbles, .nibble_dots_f16 = kNibbleDotsF16};
const CodeKernels kAvx512Bf16Codes = {.fill = fill_fast,
                                      .bytes = look_up_each,
                                      .nibbles = nibbles,
                                      .nibble_dots = kNibbleDots,
                                      .nibble_dots_f16 = kNibbleDotsF16};

void take_vbmi_bytes(CodeKernels& kernels) {
  kernels.bytes = bytes;
  kernels.byte_dots = kByteDots;
}

}  // namespace fp8kv

#endif
