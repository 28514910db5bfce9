// Products with codes of quantised weights by AVX2, and decoding of codes to 16-bit numbers.
#if defined(__x86_64__)

#include <algorithm>
#include <array>

#include "backend/cpu/isa/common/cpu_code_kernels.h"
#include "backend/cpu/isa/x86/cpu_avx2.h"
#include "backend/cpu/isa/x86/cpu_code_readers_avx2.h"

namespace fp8kv {
namespace {

using avx2::Bf16;
using avx2::E4m3ToBf16;
using avx2::E4m3ToF16;
using avx2::F16;
using avx2::is_ordinary;
using avx2::kLanes;
using avx2::Nibbles;
using avx2::packed;
using avx2::scaled;
using avx2::SignedBytes;

// Decodes columns [k, k + kStep) of row w one by one, within run i.
template <typename Reader, typename To>
void read_each(const ScaledRows& rows, int w, int64_t i, int64_t k, float* to) {
  for (int64_t j = 0; j < Reader::kStep; ++j) {
    const float value = rows.values[Reader::code(rows.codes[w], k + j)];
    to[j] = To::round_each((value - rows.zeros[w][i]) * rows.scales[w][i]);
  }
}

template <int Rows, int Count>
struct Sums {
  __m256 of[Count][Rows];
};

// Adds the products of columns [begin, end). A function of its own, so that tables and sums stay in
// registers. `Any`: decodes with load_any.
template <bool Any, typename Reader, int Rows, int Count>
FP8KV_AVX2 [[gnu::noinline]] void add_columns(const std::array<Reader, Count>& given,
                                              const uint8_t* const* codes, const float* x,
                                              int64_t x_stride, int64_t begin, int64_t end,
                                              Sums<Rows, Count>& sums) {
  const std::array<Reader, Count> readers = given;
  Sums<Rows, Count> sum = sums;
  for (int64_t k = begin; k < end; k += Reader::kWide) {
#pragma GCC unroll 4
    for (size_t w = 0; w < Count; ++w) {
      const uint8_t* from = codes[w] + k / Reader::kPerByte;
      __m256 weights[Reader::kWide / kLanes];
      if constexpr (Any) {
        readers[w].load_any(from, weights);
      } else {
        readers[w].load(from, weights);
      }
#pragma GCC unroll 4
      for (int i = 0; i < Reader::kWide / kLanes; ++i) {
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const __m256 of_x = _mm256_loadu_ps(x + r * x_stride + k + i * kLanes);
          sum.of[w][r] = _mm256_fmadd_ps(weights[i], of_x, sum.of[w][r]);
        }
      }
    }
  }
  sums = sum;
}

// Adds the products of kStep columns, decoded with read_each.
template <typename Reader, typename To, int Rows, int Count>
FP8KV_AVX2 [[gnu::noinline]] void add_each(const ScaledRows& rows, int first, int64_t i,
                                           const float* x, int64_t x_stride, int64_t k,
                                           Sums<Rows, Count>& sums) {
  alignas(32) float worth[Reader::kStep];
  for (int w = 0; w < Count; ++w) {
    read_each<Reader, To>(rows, first + w, i, k, worth);
    for (int64_t j = 0; j < Reader::kStep; j += kLanes) {
      for (int r = 0; r < Rows; ++r) {
        __m256& sum = sums.of[w][r];
        sum = _mm256_fmadd_ps(_mm256_load_ps(worth + j), _mm256_loadu_ps(x + r * x_stride + k + j),
                              sum);
      }
    }
  }
}

// Columns that are checked before they are multiplied: their codes stay in the first-level cache.
constexpr int64_t kAtOnce = 1024;

// Products with rows [First, First + Count) of the four.
template <typename Reader, typename To, int Rows, int First, int Count>
FP8KV_AVX2 void dots_with(const ScaledRows& rows, const float* x, int64_t x_stride, int64_t count,
                          float* out) {
  const uint8_t* const* codes = rows.codes.data() + First;
  const auto special_at = [&](int64_t k) __attribute__((target("avx2,fma,f16c"))) {
    int most = 0;
    for (int w = 0; w < Count; ++w) {
      const uint8_t* from = codes[w] + k / Reader::kPerByte;
      fetch_ahead(codes[w], k / Reader::kPerByte, count / Reader::kPerByte);
      most = std::max(most, Reader::special(from));
    }
    return most;
  };
  Sums<Rows, Count> sums{};
  for (int64_t i = 0, begin = 0; begin < count; ++i, begin += rows.run) {
    std::array<Reader, Count> readers;
    bool ordinary = true;
    for (int w = 0; w < Count; ++w) {
      readers[static_cast<size_t>(w)].begin(rows, First + w, i);
      ordinary = ordinary && is_ordinary(rows.scales[static_cast<size_t>(First + w)][i]);
    }
    const int64_t run = run_end(rows.run, begin, count);
    for (int64_t k = begin; k < run;) {
      const int special = ordinary ? special_at(k) : 2;
      int64_t end = k + Reader::kStep;
      const int64_t most = std::min(run, k + kAtOnce);
      while (special == 0 && end < most && special_at(end) == 0) end += Reader::kStep;
      if (special == 0) {
        add_columns<false, Reader, Rows, Count>(readers, codes, x, x_stride, k, end, sums);
      } else if (special == 1) {
        add_columns<true, Reader, Rows, Count>(readers, codes, x, x_stride, k, end, sums);
      } else {
        add_each<Reader, To, Rows, Count>(rows, First, i, x, x_stride, k, sums);
      }
      k = end;
    }
  }
  for (int w = 0; w < Count; ++w) {
    for (int r = 0; r < Rows; ++r) {
      out[r * kDotWeights + First + w] = avx2::sum_of(sums.of[w][r]);
    }
  }
}

template <typename Reader, typename To, int Rows>
FP8KV_AVX2 void dots(const ScaledRows& rows, const float* x, int64_t x_stride, int64_t count,
                     float* out) {
  if constexpr (Rows == 1) {
    dots_with<Reader, To, Rows, 0, kDotWeights>(rows, x, x_stride, count, out);
  } else {
    dots_with<Reader, To, Rows, 0, 2>(rows, x, x_stride, count, out);
    dots_with<Reader, To, Rows, 2, 2>(rows, x, x_stride, count, out);
  }
}

template <typename Reader, typename To>
constexpr CodeKernels::ScaledDots kDots[kMaxDotRows] = {dots<Reader, To, 1>, dots<Reader, To, 2>,
                                                        dots<Reader, To, 3>, dots<Reader, To, 4>};

// The 16 bits of (values[code] - zero) * scale for 8 codes from `values`, in words.
FP8KV_AVX2 [[gnu::always_inline]] inline __m256i worth_of(const float* values, float zero,
                                                          float scale, bool bf16) {
  const __m256 worth = scaled(_mm256_loadu_ps(values), zero, scale);
  return bf16 ? Bf16::bits(worth) : F16::bits(worth);
}

FP8KV_AVX2 void fill(const float* values, float zero, float scale, bool bf16, CodeTable& table) {
  if (!is_ordinary(scale)) return kPortableCodes.fill(values, zero, scale, bf16, table);
  for (size_t code = 0; code < table.low.size(); code += 2 * kLanes) {
    const __m256i words = packed(worth_of(values + code, zero, scale, bf16),
                                 worth_of(values + code + kLanes, zero, scale, bf16));
    const __m256i low = _mm256_and_si256(words, _mm256_set1_epi16(0xFF));
    const __m256i bytes =
        _mm256_permute4x64_epi64(_mm256_packus_epi16(low, _mm256_srli_epi16(words, 8)), 0xD8);
    _mm_store_si128(reinterpret_cast<__m128i*>(table.low.data() + code),
                    _mm256_castsi256_si128(bytes));
    _mm_store_si128(reinterpret_cast<__m128i*>(table.high.data() + code),
                    _mm256_extracti128_si256(bytes, 1));
  }
}

template <typename To>
FP8KV_AVX2 void nibbles_as(const uint8_t* codes, int64_t count, const float* values, float zero,
                           float scale, uint16_t* to) {
  using Reader = Nibbles<F16>;  // which keeps words in order
  Nibbles<To> tables;
  tables.begin(values, zero, scale);
  const Reader reader{tables.low, tables.high};
  for (int64_t i = 0; i < count; i += Reader::kWide) {
    __m256i words[2];
    reader.look_up(codes + i / 2, words);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), words[0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i + 16), words[1]);
  }
}

void nibbles(const uint8_t* codes, int64_t count, const float* values, float zero, float scale,
             bool bf16, uint16_t* to) {
  const int64_t whole = is_ordinary(scale) ? count / kNibbleStep * kNibbleStep : 0;
  if (whole > 0) {
    (bf16 ? nibbles_as<Bf16> : nibbles_as<F16>)(codes, whole, values, zero, scale, to);
  }
  kPortableCodes.nibbles(codes + whole / 2, count - whole, values, zero, scale, bf16, to + whole);
}

}  // namespace

const CodeKernels kAvx2Codes = {
    .fill = fill,
    .bytes = look_up_each,
    .nibbles = nibbles,
    .plain_dots = {kDots<E4m3ToBf16, Bf16>, kDots<SignedBytes<Bf16>, Bf16>},
    .plain_dots_f16 = {kDots<E4m3ToF16, F16>, kDots<SignedBytes<F16>, F16>},
    .nibble_dots = kDots<Nibbles<Bf16>, Bf16>,
    .nibble_dots_f16 = kDots<Nibbles<F16>, F16>,
};

}  // namespace fp8kv

#endif
