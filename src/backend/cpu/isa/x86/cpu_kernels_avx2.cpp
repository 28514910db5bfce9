// AVX2 with FMA and F16C.
#if defined(__x86_64__)

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/x86/cpu_avx2.h"

namespace fp8kv {
namespace {

using avx2::kLanes;
using avx2::Vector;

constexpr int kStrip = 2 * kLanes;
// 6 rows of two accumulators, the panel's two vectors and one broadcast: 15 of 16 registers.
constexpr int kTileRows = 6;

// Stores the transpose of 8 x 8 values: rows in, columns out, `kStrip` apart.
FP8KV_AVX2 [[gnu::always_inline]] inline void store_transposed(__m256 (&x)[8], float* to) {
  __m256 y[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
    x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xEE);
    x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
    x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * kStrip, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * kStrip, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
  }
}

template <typename Element>
FP8KV_AVX2 void pack_panel(const std::byte* const* rows, int depth, float* panel) {
  const int whole = depth / kLanes * kLanes;
  for (int half = 0; half < kStrip; half += kLanes) {
    for (int k = 0; k < whole; k += kLanes) {
      __m256 x[kLanes];
#pragma GCC unroll 8
      for (int i = 0; i < kLanes; ++i) {
        x[i] = Vector<Element>::load(rows[half + i] + k * Element::kBytes);
      }
      store_transposed(x, panel + k * kStrip + half);
    }
  }
  for (int k = whole; k < depth; ++k) {
    for (int j = 0; j < kStrip; ++j) {
      panel[k * kStrip + j] = Element::load(rows[j] + k * Element::kBytes);
    }
  }
}

template <typename Element>
FP8KV_AVX2 void copy_panel(const std::byte* const* rows, int n_rows, int columns, float* panel) {
  if (columns == kStrip) {
    for (int r = 0; r < n_rows; ++r) {
      _mm256_store_ps(panel + r * kStrip, Vector<Element>::load(rows[r]));
      _mm256_store_ps(panel + r * kStrip + kLanes,
                      Vector<Element>::load(rows[r] + kLanes * Element::kBytes));
    }
    return;
  }
  for (int r = 0; r < n_rows; ++r) {
    loops::copy_row<Element>(rows[r], columns, kStrip, panel + r * kStrip);
  }
}

template <int Rows>
FP8KV_AVX2 void tile(const float* a, const float* panel, int depth, float* c, int64_t c_stride,
                     bool add) {
  __m256 sum[Rows][2];
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
  for (int k = 0; k < depth; ++k) {
    const __m256 low = _mm256_load_ps(panel + k * kStrip);
    const __m256 high = _mm256_load_ps(panel + k * kStrip + kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + r * kTileStride + k);
      sum[r][0] = _mm256_fmadd_ps(x, low, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(x, high, sum[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    float* out = c + r * c_stride;
    if (add) {
      sum[r][0] = _mm256_add_ps(_mm256_loadu_ps(out), sum[r][0]);
      sum[r][1] = _mm256_add_ps(_mm256_loadu_ps(out + kLanes), sum[r][1]);
    }
    _mm256_storeu_ps(out, sum[r][0]);
    _mm256_storeu_ps(out + kLanes, sum[r][1]);
  }
}

template <typename Element>
FP8KV_AVX2 void to_float(const std::byte* from, int64_t count, float* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    _mm256_storeu_ps(to + i, Vector<Element>::load(from + i * Element::kBytes));
  }
  loops::to_float<Element>(from + whole * Element::kBytes, count - whole, to + whole);
}

template <typename Element>
FP8KV_AVX2 void store(const float* from, int64_t count, float scale, std::byte* to) {
  loops::store<Element>(from, count, scale, to);
}

// fp8_encode<F>(x) for 8 values, in the low bytes of 32-bit words.
template <Fp8Format F>
FP8KV_AVX2 [[gnu::always_inline]] inline __m256i encode(__m256 x) {
  constexpr Fp8Spec spec = fp8_spec(F);
  constexpr int kShift = 23 - spec.mantissa_bits;
  const auto bits_of = [](float value) { return static_cast<int>(float_bits(value)); };
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(magnitude, kShift), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(magnitude, even),
                                         _mm256_set1_epi32((1 << (kShift - 1)) - 1)),
                        kShift);
  const __m256i normal =
      _mm256_sub_epi32(rounded, _mm256_set1_epi32((127 - spec.bias) << spec.mantissa_bits));
  // The magnitude in units of the smallest subnormal, a power of two.
  const __m256 units =
      _mm256_mul_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(1 / spec.min_subnormal));
  const __m256i subnormal =
      _mm256_and_si256(_mm256_castps_si256(_mm256_add_ps(units, _mm256_set1_ps(8388608.0f))),
                       _mm256_set1_epi32(0x7FFFFF));
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(bits_of(spec.min_normal)), magnitude);
  const __m256i large = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(bits_of(spec.max) - 1));
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
  __m256i code = _mm256_blendv_epi8(normal, subnormal, small);
  code = _mm256_blendv_epi8(code, _mm256_set1_epi32(spec.max_code), large);
  if constexpr (spec.fnuz) {
    const __m256i zero = _mm256_cmpeq_epi32(code, _mm256_setzero_si256());  // there is no -0
    code = _mm256_or_si256(code, _mm256_andnot_si256(zero, sign));
    return _mm256_blendv_epi8(code, _mm256_set1_epi32(0x80), nan);
  } else {
    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7F), nan);
    return _mm256_or_si256(code, sign);
  }
}

template <Fp8Format F>
FP8KV_AVX2 void store_fp8(const float* from, int64_t count, float scale, std::byte* to) {
  const int64_t whole = count / kLanes * kLanes;
  const __m256i low_bytes =
      _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1,
                       -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const __m256 x = _mm256_div_ps(_mm256_loadu_ps(from + i), _mm256_set1_ps(scale));
    const __m256i codes = _mm256_shuffle_epi8(encode<F>(x), low_bytes);
    const __m128i both =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), both);
  }
  loops::store<Fp8Element<F>>(from + whole, count - whole, scale, to + whole);
}

FP8KV_AVX2 float softmax(float* scores, int begin, int end, int count, float scale,
                         SoftmaxState& state) {
  return loops::softmax(scores, begin, end, count, scale, state);
}

template <Activation A>
FP8KV_AVX2 void activate(float* x, const float* up, int64_t count) {
  loops::activate<A>(x, up, count);
}

FP8KV_AVX2 void clamped_swiglu(float* gate, const float* up, int64_t count,
                               const ClampedSwiglu& how) {
  loops::clamped_swiglu(gate, up, count, how);
}

FP8KV_AVX2 void cap(float* x, int64_t count, float multiplier, float most) {
  loops::cap(x, count, multiplier, most);
}

FP8KV_AVX2 void rotate(float* x, const float* rope, int half) {
  loops::rotate(x, rope, half);
}

FP8KV_AVX2 void round_f16(float* x, int64_t count) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const __m128i codes = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_ps(x + i, _mm256_cvtph_ps(codes));
  }
  loops::round_f16(x + whole, count - whole);
}

FP8KV_AVX2 void round_bf16(float* x, int64_t count) {
  loops::round_bf16(x, count);
}

FP8KV_AVX2 uint32_t largest_bits(const float* x, int64_t count, uint32_t least) {
  return loops::largest_bits(x, count, least);
}

FP8KV_AVX2 uint32_t magnitude_bins(const float* x, int64_t count, uint32_t* bins) {
  return loops::magnitude_bins(x, count, bins);
}

FP8KV_AVX2 void divide(float* x, int64_t count, float by) {
  loops::divide(x, count, by);
}

FP8KV_AVX2 void state_pass(float* state, int64_t k_dim, const StateWrite* write,
                           const StateRead* read) {
  loops::state_pass(state, k_dim, write, read);
}

constexpr CpuKernels::Tile kTiles[kTileRows] = {tile<1>, tile<2>, tile<3>,
                                                tile<4>, tile<5>, tile<6>};

}  // namespace

const CpuKernels kAvx2Kernels = {
    .strip = kStrip,
    .tile_rows = kTileRows,
    .pack_panel = per_type<CpuKernels::PackPanel>([]<typename T>() { return pack_panel<T>; }),
    .copy_panel = per_type<CpuKernels::CopyPanel>([]<typename T>() { return copy_panel<T>; }),
    .tiles = kTiles,
    .pack_pairs = nullptr,
    .pair_tiles = nullptr,
    .dots = {kAvx2F32Dots, kAvx2F16Dots, kAvx2Bf16Dots, nullptr, nullptr, nullptr, nullptr},
    .pair_dots = nullptr,
    .codes = &kAvx2Codes,
    .to_float = per_type<CpuKernels::ToFloat>([]<typename T>() { return to_float<T>; }),
    .store = {store<F32Element>, store<F16Element>, store<Bf16Element>,
              store_fp8<Fp8Format::e4m3fn>, store_fp8<Fp8Format::e4m3fnuz>,
              store_fp8<Fp8Format::e5m2>, store_fp8<Fp8Format::e5m2fnuz>},
    .softmax = softmax,
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

}  // namespace fp8kv

#endif
