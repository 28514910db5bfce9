// Codes of quantised weights by AVX512_VBMI and AVX512_BF16: byte codes pick from tables of bytes,
// and a byte permutation picks each 4-bit code.
#if defined(__x86_64__)

#include "backend/cpu/isa/x86/cpu_code_tables_avx512.h"

namespace fp8kv {
namespace {

using avx512::leave_no_subnormal;
using avx512::NibbleRun;
using avx512::NibbleSums;

// Four steps at a time: a byte permutation picks each code from 64 bytes, or from these bytes
// shifted right by four bits. REQUIRES runs of whole four steps.
template <int Rows>
FP8KV_AVX512_VBMI_BF16 void nibble_dots_by_four(const ScaledRows& rows, const float* x,
                                                int64_t x_stride, int64_t count, float* out) {
  constexpr int kSteps = 4;
  alignas(64) static constexpr auto kBytes = [] {
    std::array<std::array<uint8_t, 64>, kSteps> at{};
    for (size_t i = 0; i < kSteps * kNibbleStep; ++i) {
      at[i / kNibbleStep][i % kNibbleStep * 2] = static_cast<uint8_t>(i / 2 + i % 2 * 64);
    }
    return at;
  }();
  __m512i bytes[kSteps];
  for (size_t step = 0; step < kSteps; ++step) bytes[step] = _mm512_load_si512(kBytes[step].data());
  const bool fast = leave_no_subnormal(rows, count);
  NibbleSums<Rows> sums;
  for (int64_t i = 0; i * rows.run < count; ++i) {
    const NibbleRun run(rows, i, count, fast);
    for (int64_t k = run.begin; k < run.end; k += kSteps * kNibbleStep) {
#pragma GCC unroll 4
      for (int w = 0; w < kDotWeights; ++w) {
        const __m512i first = _mm512_loadu_si512(rows.codes[w] + k / 2);
        const __m512i second = _mm512_srli_epi16(first, 4);
#pragma GCC unroll 4
        for (int step = 0; step < kSteps; ++step) {
          const __m512i codes = _mm512_permutex2var_epi8(first, bytes[step], second);
          sums.add(w, _mm512_permutexvar_epi16(codes, run.tables[w]),
                   x + (k + step * kNibbleStep) / 2, x_stride);
        }
      }
    }
  }
  sums.write(out);
}

// With more rows of x there are too few registers for four steps.
template <int Rows>
FP8KV_AVX512_VBMI_BF16 void nibble_dots(const ScaledRows& rows, const float* x, int64_t x_stride,
                                        int64_t count, float* out) {
  constexpr int64_t kFour = 4 * kNibbleStep;
  if constexpr (Rows <= 2) {
    if (rows.run % kFour == 0 && count % kFour == 0) {
      return nibble_dots_by_four<Rows>(rows, x, x_stride, count, out);
    }
  }
  kAvx512Bf16Codes.nibble_dots[Rows - 1](rows, x, x_stride, count, out);
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

// Looks up codes in a table whose upper half is its lower half with the bits `other` changed.
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
  // Unpacking takes 8 bytes of each 16, so the first 32 codes are moved there.
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

// Products with rows [First, First + Count) of the four. `Shared`: all rows use the first row's
// tables. The few rows keep their tables in registers: eight per row, or four if mirrored.
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
constexpr CodeKernels::ByteDots kByteDots[kMaxDotRows] = {byte_dots<1>, byte_dots<2>, byte_dots<3>,
                                                          byte_dots<4>};

}  // namespace

void take_vbmi_codes(CodeKernels& kernels) {
  kernels.bytes = bytes;
  kernels.byte_dots = kByteDots;
  kernels.nibble_dots = kNibbleDots;
}

}  // namespace fp8kv

#endif
