// Codes of quantised weights as numbers of 16 bits, bf16 or f16: the inner loops, one table per
// instruction set. Numbers are those of weight_value, rounded once.
#pragma once

#include <array>
#include <cstdint>

namespace fp8kv {

inline constexpr int kMaxDotRows = 4;
inline constexpr int kDotWeights = 4;

// What each code of eight bits is worth, a number of 16 bits in two bytes.
struct CodeTable {
  alignas(64) std::array<uint8_t, 256> low;
  alignas(64) std::array<uint8_t, 256> high;
};

// Rows with a byte for each column. In columns [i * run, (i + 1) * run) those of row w are worth
// what tables[w][i] says. `mirrored`: the upper half of each table is the lower one with the other
// sign, NaN's aside, as tables of FP8 with infinities or NaN at its ends are.
struct ByteRows {
  std::array<const uint8_t*, kDotWeights> codes;
  std::array<const CodeTable*, kDotWeights> tables;
  int64_t run;
  bool mirrored;
};

// Rows with four bits for each column, the first in the low bits of a byte, or with a byte. In
// columns [i * run, (i + 1) * run) codes of row w are worth
// (values[code] - zeros[w][i]) * scales[w][i].
struct ScaledRows {
  std::array<const uint8_t*, kDotWeights> codes;
  std::array<const float*, kDotWeights> scales;
  std::array<const float*, kDotWeights> zeros;
  const float* values;  // [16], or [256]
  int64_t run;
};

// Bytes whose values follow from their bits by a few instructions.
enum class PlainBytes { e4m3fn, i8 };
inline constexpr int kPlainBytes = 2;

// Columns that products of codes take at a time: runs are multiples of them, and rows too.
inline constexpr int64_t kByteStep = 64;
inline constexpr int64_t kNibbleStep = 32;

struct CodeKernels {
  // table: (values[code] - zero) * scale of all codes, rounded to bf16, or to f16.
  //   values [256]
  using Fill = void (*)(const float* values, float zero, float scale, bool bf16, CodeTable& table);
  using Bytes = void (*)(const uint8_t* codes, int64_t count, const CodeTable& table, uint16_t* to);
  // (values[code] - zero) * scale of `count` codes, rounded to bf16, or to f16.   values [16]
  using Nibbles = void (*)(const uint8_t* codes, int64_t count, const float* values, float zero,
                           float scale, bool bf16, uint16_t* to);
  // As CpuKernels::Dots of what the rows are worth, with its bits: in f16 where the name says so,
  // else in bf16, where it is as pair_dots if there are such. REQUIRES whole steps.
  using ByteDots = void (*)(const ByteRows& rows, const float* x, int64_t x_stride, int64_t count,
                            float* out);
  using ScaledDots = void (*)(const ScaledRows& rows, const float* x, int64_t x_stride,
                              int64_t count, float* out);

  Fill fill;
  Bytes bytes;
  Nibbles nibbles;
  // [kMaxDotRows]: for 1, 2, ... rows of x; null: decoded rows are multiplied. Bytes go by tables,
  // or by their scales where they are in the order of PlainBytes.
  const ByteDots* byte_dots = nullptr;
  std::array<const ScaledDots*, kPlainBytes> plain_dots = {};
  std::array<const ScaledDots*, kPlainBytes> plain_dots_f16 = {};
  const ScaledDots* nibble_dots = nullptr;
  const ScaledDots* nibble_dots_f16 = nullptr;
};

// Rows are short: what the processor fetches by itself comes too late. Fetches what is read some
// time after byte `at` of a row of `row_bytes`, of which kDotWeights are read together: past the
// end of a row the row that comes after them. Past the end of memory nothing is fetched. Into the
// second cache, as the first one has room for few requests on their way: on Zen 4 decoding with FP8
// weights is a third faster than with fetches into the first, or from half as far ahead.
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* row, int64_t at, int64_t row_bytes) {
  constexpr int64_t kAhead = 2048;
  constexpr int kRead = 0, kSecondCache = 2;
  const int64_t to = at + kAhead;
  const int64_t past = to < row_bytes ? 0 : (kDotWeights - 1) * row_bytes;
  __builtin_prefetch(row + to + past, kRead, kSecondCache);
}

// The same for each line of the cache that begins in bytes [begin, end): once, as a second time
// costs as much as reading the codes.
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* row, int64_t begin, int64_t end,
                                               int64_t row_bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t at = (begin + kLine - 1) / kLine * kLine; at < end; at += kLine) {
    fetch_ahead(row, at, row_bytes);
  }
}

// The last run may be shorter than the others.
constexpr int64_t run_end(int64_t run, int64_t begin, int64_t count) {
  return begin + run < count ? begin + run : count;
}

// CodeKernels::Bytes, for every processor and for what is left of a step.
inline void look_up_each(const uint8_t* codes, int64_t count, const CodeTable& table,
                         uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<uint16_t>(table.low[codes[i]] | table.high[codes[i]] << 8);
  }
}

extern const CodeKernels kPortableCodes;
#if defined(__x86_64__)
extern const CodeKernels kAvx2Codes;
extern const CodeKernels kAvx512Codes;
extern const CodeKernels kAvx512Bf16Codes;
// Replaces what is faster by AVX512_VBMI, where the processor has that besides.
void take_vbmi_codes(CodeKernels& kernels);
#endif
#if defined(__aarch64__)
extern const CodeKernels kNeonCodes;
extern const CodeKernels kNeonBf16Codes;
#endif

}  // namespace fp8kv
