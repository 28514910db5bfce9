// The inner loops that turn codes of quantised weights into 16-bit numbers, bf16 or f16; one table
// per instruction set. Numbers are those of weight_value, rounded once.
#pragma once

#include <array>
#include <cstdint>

namespace fp8kv {

inline constexpr int kMaxDotRows = 4;
inline constexpr int kDotWeights = 4;

// The 16-bit number of each 8-bit code, split in its low and high bytes.
struct CodeTable {
  alignas(64) std::array<uint8_t, 256> low;
  alignas(64) std::array<uint8_t, 256> high;
};

// Rows with a byte for each column. In columns [i * run, (i + 1) * run), tables[w][i] has the
// values of row w's codes. `mirrored`: the upper half of each table is the negated lower half,
// except for NaN. FP8 tables with infinities or NaN at their ends are mirrored.
struct ByteRows {
  std::array<const uint8_t*, kDotWeights> codes;
  std::array<const CodeTable*, kDotWeights> tables;
  int64_t run;
  bool mirrored;
};

// Rows with four bits for each column, the first in the low bits of a byte, or with a byte each. In
// columns [i * run, (i + 1) * run), a code of row w has the value (values[code] - zeros[w][i]) *
// scales[w][i].
struct ScaledRows {
  std::array<const uint8_t*, kDotWeights> codes;
  std::array<const float*, kDotWeights> scales;
  std::array<const float*, kDotWeights> zeros;
  const float* values;  // [16], or [256]
  int64_t run;
};

// Bytes that a few instructions turn into their values, without a table.
enum class PlainBytes { e4m3fn, i8 };
inline constexpr int kPlainBytes = 2;

// Columns per step of products with codes. The length of runs and rows is a multiple of it.
inline constexpr int64_t kByteStep = 64;
inline constexpr int64_t kNibbleStep = 32;

struct CodeKernels {
  // Fills table with (values[code] - zero) * scale of all codes, rounded to bf16, or to f16.
  //   values [256]
  using Fill = void (*)(const float* values, float zero, float scale, bool bf16, CodeTable& table);
  using Bytes = void (*)(const uint8_t* codes, int64_t count, const CodeTable& table, uint16_t* to);
  // Writes (values[code] - zero) * scale of `count` codes, rounded to bf16, or to f16.   values
  // [16]
  using Nibbles = void (*)(const uint8_t* codes, int64_t count, const float* values, float zero,
                           float scale, bool bf16, uint16_t* to);
  // CpuKernels::Dots of the decoded rows, with the same bits. Rows are f16 where the name says so,
  // else bf16 with the bits of pair_dots if the set has these. REQUIRES whole steps.
  using ByteDots = void (*)(const ByteRows& rows, const float* x, int64_t x_stride, int64_t count,
                            float* out);
  using ScaledDots = void (*)(const ScaledRows& rows, const float* x, int64_t x_stride,
                              int64_t count, float* out);

  Fill fill;
  Bytes bytes;
  Nibbles nibbles;
  // [kMaxDotRows]: for 1, 2, ... rows of x. Null: the caller multiplies decoded rows. Bytes listed
  // in PlainBytes go by their scales, others by tables.
  const ByteDots* byte_dots = nullptr;
  std::array<const ScaledDots*, kPlainBytes> plain_dots = {};
  std::array<const ScaledDots*, kPlainBytes> plain_dots_f16 = {};
  const ScaledDots* nibble_dots = nullptr;
  const ScaledDots* nibble_dots_f16 = nullptr;
};

// Fetches what is read some time after byte `at` of a row, since rows are too short for the
// processor's own prefetching. A row has `row_bytes`, and kDotWeights rows are read together. Past
// the end of a row it fetches the row that comes after them; past the end of memory, nothing. It
// fetches into the second-level cache, since the first takes few requests at a time. On Zen 4,
// decoding with FP8 weights is a third faster than with the first level, or from half as far ahead.
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* row, int64_t at, int64_t row_bytes) {
  constexpr int64_t kAhead = 2048;
  constexpr int kRead = 0, kSecondCache = 2;
  const int64_t to = at + kAhead;
  const int64_t past = to < row_bytes ? 0 : (kDotWeights - 1) * row_bytes;
  __builtin_prefetch(row + to + past, kRead, kSecondCache);
}

inline constexpr int64_t kCacheLine = 64;

// Fetches ahead if a cache line of the row begins at byte `at`, for steps shorter than a line.
[[gnu::always_inline]] inline void fetch_line_ahead(const std::byte* row, int64_t at,
                                                    int64_t row_bytes) {
  if (at % kCacheLine == 0) fetch_ahead(reinterpret_cast<const uint8_t*>(row), at, row_bytes);
}

// Fetches ahead for each cache line that begins in bytes [begin, end). Once per line: a second time
// costs as much as reading the codes.
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* row, int64_t begin, int64_t end,
                                               int64_t row_bytes) {
  for (int64_t at = (begin + kCacheLine - 1) / kCacheLine * kCacheLine; at < end;
       at += kCacheLine) {
    fetch_ahead(row, at, row_bytes);
  }
}

// The end of a run; the last run may be shorter than the others.
constexpr int64_t run_end(int64_t run, int64_t begin, int64_t count) {
  return begin + run < count ? begin + run : count;
}

// CodeKernels::Bytes for every processor, and for the rest after whole steps.
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
// Replaces the kernels that AVX512_VBMI makes faster, for processors that also have it.
void take_vbmi_codes(CodeKernels& kernels);
#endif
#if defined(__aarch64__)
extern const CodeKernels kNeonCodes;
extern const CodeKernels kNeonBf16Codes;
#endif

}  // namespace fp8kv
