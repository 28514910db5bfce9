// AVX-512 (F, BW, DQ, VL), and the same with AVX512_BF16 for products of bf16.
#if defined(__x86_64__)

#include <immintrin.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/x86/cpu_avx512.h"
#include "backend/cpu/isa/x86/cpu_avx512_elements.h"
#include "backend/cpu/isa/x86/cpu_avx512_panels.h"

#define FP8KV_AVX512_BF16 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]]

namespace fp8kv {
namespace {

constexpr int kLanes = avx512::kLanes;
constexpr int kStrip = avx512::kStrip;
using avx512::copy_panel;
using avx512::encode;
using avx512::pack_pairs;
using avx512::pack_panel;
using avx512::Vector;
// 14 rows of two accumulators, the panel's two vectors and one broadcast: 31 of 32 registers.
constexpr int kTileRows = 14;

template <int Rows>
FP8KV_AVX512 void tile(const float* a, const float* panel, int depth, float* c, int64_t c_stride,
                       bool add) {
  __m512 sum[Rows][2];
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  for (int k = 0; k < depth; ++k) {
    const __m512 low = _mm512_load_ps(panel + k * kStrip);
    const __m512 high = _mm512_load_ps(panel + k * kStrip + kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      const __m512 x = _mm512_set1_ps(a[r * kTileStride + k]);
      sum[r][0] = _mm512_fmadd_ps(x, low, sum[r][0]);
      sum[r][1] = _mm512_fmadd_ps(x, high, sum[r][1]);
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) {
    float* out = c + r * c_stride;
    if (add) {
      sum[r][0] = _mm512_add_ps(_mm512_loadu_ps(out), sum[r][0]);
      sum[r][1] = _mm512_add_ps(_mm512_loadu_ps(out + kLanes), sum[r][1]);
    }
    _mm512_storeu_ps(out, sum[r][0]);
    _mm512_storeu_ps(out + kLanes, sum[r][1]);
  }
}

// Like `tile`, but each step adds two products, one after the other.
template <int Rows>
FP8KV_AVX512_BF16 void pair_tile(const float* a, const float* panel, int depth, float* c,
                                 int64_t c_stride, bool add) {
  __m512 sum[Rows][2];
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  for (int k = 0; k < depth; ++k) {
    const auto low = (__m512bh)_mm512_load_si512(panel + k * kStrip);
    const auto high = (__m512bh)_mm512_load_si512(panel + k * kStrip + kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      const auto x = (__m512bh)_mm512_castps_si512(_mm512_set1_ps(a[r * kTileStride + k]));
      sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, low);
      sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, high);
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) {
    float* out = c + r * c_stride;
    if (add) {
      sum[r][0] = _mm512_add_ps(_mm512_loadu_ps(out), sum[r][0]);
      sum[r][1] = _mm512_add_ps(_mm512_loadu_ps(out + kLanes), sum[r][1]);
    }
    _mm512_storeu_ps(out, sum[r][0]);
    _mm512_storeu_ps(out + kLanes, sum[r][1]);
  }
}

template <typename Element, int Rows>
FP8KV_AVX512 void dots(const std::byte* const* weights, const float* x, int64_t x_stride,
                       int64_t count, float* out) {
  __m512 sum[kDotWeights][Rows];
#pragma GCC unroll 4
  for (int w = 0; w < kDotWeights; ++w) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[w][r] = _mm512_setzero_ps();
  }
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t k = 0; k < whole; k += kLanes) {
#pragma GCC unroll 4
    for (int w = 0; w < kDotWeights; ++w) {
      const __m512 weight = Vector<Element>::load(weights[w] + k * Element::kBytes);
      fetch_line_ahead(weights[w], k * Element::kBytes, count * Element::kBytes);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        sum[w][r] = _mm512_fmadd_ps(weight, _mm512_loadu_ps(x + r * x_stride + k), sum[w][r]);
      }
    }
  }
  for (int w = 0; w < kDotWeights; ++w) {
    for (int r = 0; r < Rows; ++r) {
      float total = _mm512_reduce_add_ps(sum[w][r]);
      for (int64_t k = whole; k < count; ++k) {
        total += Element::load(weights[w] + k * Element::kBytes) * x[r * x_stride + k];
      }
      out[r * kDotWeights + w] = total;
    }
  }
}

template <int Rows>
FP8KV_AVX512_BF16 void pair_dots(const std::byte* const* weights, const float* x, int64_t x_stride,
                                 int64_t count, float* out) {
  __m512 sum[kDotWeights][Rows];
#pragma GCC unroll 4
  for (int w = 0; w < kDotWeights; ++w) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[w][r] = _mm512_setzero_ps();
  }
  const int64_t whole = count / (2 * kLanes) * kLanes;  // pairs
  for (int64_t k = 0; k < whole; k += kLanes) {
#pragma GCC unroll 4
    for (int w = 0; w < kDotWeights; ++w) {
      const auto weight = (__m512bh)_mm512_loadu_si512(weights[w] + 4 * k);
      fetch_ahead(reinterpret_cast<const uint8_t*>(weights[w]), 4 * k, 2 * count);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const auto pairs = (__m512bh)_mm512_loadu_si512(x + r * x_stride + k);
        sum[w][r] = _mm512_dpbf16_ps(sum[w][r], weight, pairs);
      }
    }
  }
  for (int w = 0; w < kDotWeights; ++w) {
    for (int r = 0; r < Rows; ++r) {
      float total = _mm512_reduce_add_ps(sum[w][r]);
      const auto* row = reinterpret_cast<const std::byte*>(x + r * x_stride);
      for (int64_t k = 2 * whole; k < count; ++k) {
        total += Bf16Element::load(weights[w] + 2 * k) * Bf16Element::load(row + 2 * k);
      }
      out[r * kDotWeights + w] = total;
    }
  }
}

template <typename Element>
FP8KV_AVX512 void to_float(const std::byte* from, int64_t count, float* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    _mm512_storeu_ps(to + i, Vector<Element>::load(from + i * Element::kBytes));
  }
  loops::to_float<Element>(from + whole * Element::kBytes, count - whole, to + whole);
}

template <Fp8Format F>
FP8KV_AVX512 void store_fp8(const float* from, int64_t count, float scale, std::byte* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const __m512 x = _mm512_div_ps(_mm512_loadu_ps(from + i), _mm512_set1_ps(scale));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm512_cvtepi32_epi8(encode<F>(x)));
  }
  loops::store<Fp8Element<F>>(from + whole, count - whole, scale, to + whole);
}

FP8KV_AVX512 void store_f16(const float* from, int64_t count, float scale, std::byte* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const __m256i codes = _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 2 * i), codes);
  }
  loops::store<F16Element>(from + whole, count - whole, scale, to + 2 * whole);
}

template <typename Element>
FP8KV_AVX512 void store(const float* from, int64_t count, float scale, std::byte* to) {
  loops::store<Element>(from, count, scale, to);
}

template <Activation A>
FP8KV_AVX512 void activate(float* x, const float* up, int64_t count) {
  loops::activate<A>(x, up, count);
}

FP8KV_AVX512 void clamped_swiglu(float* gate, const float* up, int64_t count,
                                 const ClampedSwiglu& how) {
  loops::clamped_swiglu(gate, up, count, how);
}

FP8KV_AVX512 void cap(float* x, int64_t count, float multiplier, float most) {
  loops::cap(x, count, multiplier, most);
}

FP8KV_AVX512 void rotate(float* x, const float* rope, int half) {
  loops::rotate(x, rope, half);
}

FP8KV_AVX512 void round_f16(float* x, int64_t count) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const __m256i codes = _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm512_storeu_ps(x + i, _mm512_cvtph_ps(codes));
  }
  loops::round_f16(x + whole, count - whole);
}

FP8KV_AVX512 void round_bf16(float* x, int64_t count) {
  loops::round_bf16(x, count);
}

FP8KV_AVX512 uint32_t largest_bits(const float* x, int64_t count, uint32_t least) {
  return loops::largest_bits(x, count, least);
}

FP8KV_AVX512 uint32_t magnitude_bins(const float* x, int64_t count, uint32_t* bins) {
  return loops::magnitude_bins(x, count, bins);
}

FP8KV_AVX512 void divide(float* x, int64_t count, float by) {
  loops::divide(x, count, by);
}

// Like loops::state_columns, for all columns at once.
struct StateSums {
  __m512 of_k[2], of_q[2];
};

template <bool kWrites, bool kReads>
FP8KV_AVX512 [[gnu::always_inline]] inline void state_row(float* row, int64_t i,
                                                          const StateWrite& write,
                                                          const __m512 (&delta)[2],
                                                          const StateRead& read, StateSums& sums) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m512 s = _mm512_load_ps(row + half * kLanes);
    if constexpr (kWrites) {
      const __m512 taken = _mm512_mul_ps(_mm512_set1_ps(write.k[i]), delta[half]);
      s = _mm512_fmadd_ps(s, _mm512_set1_ps(write.decay[i * write.decay_step]), taken);
      _mm512_store_ps(row + half * kLanes, s);
    }
    if constexpr (kReads) {
      sums.of_k[half] = _mm512_fmadd_ps(s, _mm512_set1_ps(read.k[i]), sums.of_k[half]);
      sums.of_q[half] = _mm512_fmadd_ps(s, _mm512_set1_ps(read.q[i]), sums.of_q[half]);
    }
  }
}

template <bool kWrites, bool kReads>
FP8KV_AVX512 [[gnu::always_inline]] inline void state_rows(float* state, int64_t k_dim,
                                                           const StateWrite& write,
                                                           const StateRead& read) {
  static_assert(kStateColumns == 2 * kLanes);
  const __m512 zero = _mm512_setzero_ps();
  StateSums even{{zero, zero}, {zero, zero}}, odd = even;
  __m512 delta[2] = {zero, zero};
  if constexpr (kWrites) {
    delta[0] = _mm512_loadu_ps(write.delta);
    delta[1] = _mm512_loadu_ps(write.delta + kLanes);
  }
  int64_t i = 0;
  for (; i + 1 < k_dim; i += 2) {
    float* row = state + i * kStateColumns;
    state_row<kWrites, kReads>(row, i, write, delta, read, even);
    state_row<kWrites, kReads>(row + kStateColumns, i + 1, write, delta, read, odd);
  }
  if (i < k_dim) {
    state_row<kWrites, kReads>(state + i * kStateColumns, i, write, delta, read, even);
  }
  if constexpr (!kReads) return;
  for (int half = 0; half < 2; ++half) {
    _mm512_storeu_ps(read.of_k + half * kLanes, _mm512_add_ps(even.of_k[half], odd.of_k[half]));
    _mm512_storeu_ps(read.of_q + half * kLanes, _mm512_add_ps(even.of_q[half], odd.of_q[half]));
  }
}

FP8KV_AVX512 void state_pass(float* state, int64_t k_dim, const StateWrite* write,
                             const StateRead* read) {
  if (write != nullptr && read != nullptr) {
    state_rows<true, true>(state, k_dim, *write, *read);
  } else if (write != nullptr) {
    state_rows<true, false>(state, k_dim, *write, {});
  } else if (read != nullptr) {
    state_rows<false, true>(state, k_dim, {}, *read);
  }
}

constexpr CpuKernels::Tile kTiles[kTileRows] = {tile<1>,  tile<2>,  tile<3>,  tile<4>, tile<5>,
                                                tile<6>,  tile<7>,  tile<8>,  tile<9>, tile<10>,
                                                tile<11>, tile<12>, tile<13>, tile<14>};

constexpr CpuKernels::Tile kPairTiles[kTileRows] = {
    pair_tile<1>,  pair_tile<2>,  pair_tile<3>,  pair_tile<4>, pair_tile<5>,
    pair_tile<6>,  pair_tile<7>,  pair_tile<8>,  pair_tile<9>, pair_tile<10>,
    pair_tile<11>, pair_tile<12>, pair_tile<13>, pair_tile<14>};

template <typename Element>
constexpr CpuKernels::Dots kDots[kMaxDotRows] = {dots<Element, 1>, dots<Element, 2>,
                                                 dots<Element, 3>, dots<Element, 4>};

constexpr CpuKernels::Dots kPairDots[kMaxDotRows] = {pair_dots<1>, pair_dots<2>, pair_dots<3>,
                                                     pair_dots<4>};

constexpr CpuKernels make_table(CpuKernels::PackPanel pairs, const CpuKernels::Tile* pair_tiles,
                                const CpuKernels::Dots* pair_dots_table, const CodeKernels* codes) {
  return {
      .strip = kStrip,
      .tile_rows = kTileRows,
      .pack_panel = per_type<CpuKernels::PackPanel>([]<typename T>() { return pack_panel<T>; }),
      .copy_panel = per_type<CpuKernels::CopyPanel>([]<typename T>() { return copy_panel<T>; }),
      .tiles = kTiles,
      .pack_pairs = pairs,
      .pair_tiles = pair_tiles,
      .dots = {kDots<F32Element>, kDots<F16Element>, kDots<Bf16Element>, nullptr, nullptr, nullptr,
               nullptr},
      .pair_dots = pair_dots_table,
      .codes = codes,
      .to_float = per_type<CpuKernels::ToFloat>([]<typename T>() { return to_float<T>; }),
      .store = {store<F32Element>, store_f16, store<Bf16Element>, store_fp8<Fp8Format::e4m3fn>,
                store_fp8<Fp8Format::e4m3fnuz>, store_fp8<Fp8Format::e5m2>,
                store_fp8<Fp8Format::e5m2fnuz>},
      .softmax = softmax_avx512,
      .activate = per_activation([]<Activation A>() { return activate<A>; }),
      .clamped_swiglu = clamped_swiglu,
      .cap = cap,
      .rotate = rotate,
      .round_f16 = round_f16,
      .round_bf16 = round_bf16,
      .largest_bits = largest_bits,
      .magnitude_bins = magnitude_bins,
      .divide = divide,
      .state_pass = state_pass,
  };
}

}  // namespace

const CpuKernels kAvx512Kernels = make_table(nullptr, nullptr, nullptr, &kAvx512Codes);
const CpuKernels kAvx512Bf16Kernels =
    make_table(pack_pairs, kPairTiles, kPairDots, &kAvx512Bf16Codes);

}  // namespace fp8kv

#endif
