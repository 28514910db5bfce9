// NEON is part of every aarch64 processor: no function needs a target of its own, and shared loops
// are already compiled for it.
#if defined(__aarch64__)

#include "backend/cpu/isa/aarch64/cpu_neon.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"

namespace fp8kv {
namespace {

using neon::Floats;
using neon::kLanes;
using neon::Vector;

constexpr int kStrip = 2 * kLanes;
constexpr int kFours = kStrip / 4;
// 6 rows of four accumulators, the panel's four vectors and one broadcast: 29 of 32 registers.
constexpr int kTileRows = 6;

// Stores the transpose of 4 x 4 values: rows in, columns out, `kStrip` apart.
void store_transposed(const float32x4_t (&x)[4], float* to) {
  const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(x[0], x[1]));
  const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(x[0], x[1]));
  const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(x[2], x[3]));
  const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(x[2], x[3]));
  vst1q_f32(to, vreinterpretq_f32_f64(vtrn1q_f64(a, c)));
  vst1q_f32(to + kStrip, vreinterpretq_f32_f64(vtrn1q_f64(b, d)));
  vst1q_f32(to + 2 * kStrip, vreinterpretq_f32_f64(vtrn2q_f64(a, c)));
  vst1q_f32(to + 3 * kStrip, vreinterpretq_f32_f64(vtrn2q_f64(b, d)));
}

template <typename Element>
void pack_panel(const std::byte* const* rows, int depth, float* panel) {
  const int whole = depth / kLanes * kLanes;
  for (int first = 0; first < kStrip; first += 4) {
    for (int k = 0; k < whole; k += kLanes) {
      float32x4_t low[4], high[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Floats x = Vector<Element>::load(rows[first + i] + k * Element::kBytes);
        low[i] = x.low;
        high[i] = x.high;
      }
      store_transposed(low, panel + k * kStrip + first);
      store_transposed(high, panel + (k + 4) * kStrip + first);
    }
  }
  for (int k = whole; k < depth; ++k) {
    for (int j = 0; j < kStrip; ++j) {
      panel[k * kStrip + j] = Element::load(rows[j] + k * Element::kBytes);
    }
  }
}

template <typename Element>
void copy_panel(const std::byte* const* rows, int n_rows, int columns, float* panel) {
  if (columns == kStrip) {
    for (int r = 0; r < n_rows; ++r) {
      neon::store(Vector<Element>::load(rows[r]), panel + r * kStrip);
      neon::store(Vector<Element>::load(rows[r] + kLanes * Element::kBytes),
                  panel + r * kStrip + kLanes);
    }
    return;
  }
  for (int r = 0; r < n_rows; ++r) {
    loops::copy_row<Element>(rows[r], columns, kStrip, panel + r * kStrip);
  }
}

template <int Rows>
void tile(const float* a, const float* panel, int depth, float* c, int64_t c_stride, bool add) {
  float32x4_t sum[Rows][kFours];
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kFours; ++j) sum[r][j] = vdupq_n_f32(0);
  }
  for (int k = 0; k < depth; ++k) {
    float32x4_t column[kFours];
#pragma GCC unroll 4
    for (int j = 0; j < kFours; ++j) column[j] = vld1q_f32(panel + k * kStrip + 4 * j);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const float32x4_t x = vld1q_dup_f32(a + r * kTileStride + k);
#pragma GCC unroll 4
      for (int j = 0; j < kFours; ++j) sum[r][j] = vfmaq_f32(sum[r][j], x, column[j]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kFours; ++j) {
      float* out = c + r * c_stride + 4 * j;
      vst1q_f32(out, add ? vaddq_f32(vld1q_f32(out), sum[r][j]) : sum[r][j]);
    }
  }
}

template <typename Element>
void to_float(const std::byte* from, int64_t count, float* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    neon::store(Vector<Element>::load(from + i * Element::kBytes), to + i);
  }
  loops::to_float<Element>(from + whole * Element::kBytes, count - whole, to + whole);
}

void store_f16(const float* from, int64_t count, float scale, std::byte* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const uint16x8_t codes = neon::halves_of(neon::floats_at(from + i));
    vst1q_u8(reinterpret_cast<uint8_t*>(to + 2 * i), vreinterpretq_u8_u16(codes));
  }
  loops::store<F16Element>(from + whole, count - whole, scale, to + 2 * whole);
}

void round_f16(float* x, int64_t count) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    neon::store(neon::floats_of_f16(neon::halves_of(neon::floats_at(x + i))), x + i);
  }
  loops::round_f16(x + whole, count - whole);
}

// fp8_encode<F>(x) for 4 values.
template <Fp8Format F>
uint32x4_t encode(float32x4_t x) {
  constexpr Fp8Spec spec = fp8_spec(F);
  constexpr int kShift = 23 - spec.mantissa_bits;
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF));
  const uint32x4_t sign = vandq_u32(vshrq_n_u32(bits, 24), vdupq_n_u32(0x80));
  const uint32x4_t even = vandq_u32(vshrq_n_u32(magnitude, kShift), vdupq_n_u32(1));
  const uint32x4_t half = vdupq_n_u32((1u << (kShift - 1)) - 1);
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(vaddq_u32(magnitude, even), half), kShift);
  const uint32x4_t normal =
      vsubq_u32(rounded, vdupq_n_u32(static_cast<uint32_t>(127 - spec.bias) << spec.mantissa_bits));
  // The magnitude in units of the smallest subnormal, a power of two.
  const float32x4_t units =
      vmulq_f32(vreinterpretq_f32_u32(magnitude), vdupq_n_f32(1 / spec.min_subnormal));
  const uint32x4_t subnormal = vandq_u32(
      vreinterpretq_u32_f32(vaddq_f32(units, vdupq_n_f32(8388608.0f))), vdupq_n_u32(0x7FFFFF));
  const uint32x4_t small = vcltq_u32(magnitude, vdupq_n_u32(float_bits(spec.min_normal)));
  const uint32x4_t large = vcgeq_u32(magnitude, vdupq_n_u32(float_bits(spec.max)));
  const uint32x4_t nan = vcgtq_u32(magnitude, vdupq_n_u32(0x7F800000));
  uint32x4_t code = vbslq_u32(small, subnormal, normal);
  code = vbslq_u32(large, vdupq_n_u32(spec.max_code), code);
  if constexpr (spec.fnuz) {
    // The code of -0 would mean NaN.
    code = vorrq_u32(code, vandq_u32(vtstq_u32(code, code), sign));
    return vbslq_u32(nan, vdupq_n_u32(0x80), code);
  } else {
    return vorrq_u32(vbslq_u32(nan, vdupq_n_u32(0x7F), code), sign);
  }
}

template <Fp8Format F>
void store_fp8(const float* from, int64_t count, float scale, std::byte* to) {
  const int64_t whole = count / kLanes * kLanes;
  const float32x4_t by = vdupq_n_f32(scale);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Floats x = neon::floats_at(from + i);
    const uint16x4_t low = vmovn_u32(encode<F>(vdivq_f32(x.low, by)));
    const uint16x8_t words = vmovn_high_u32(low, encode<F>(vdivq_f32(x.high, by)));
    vst1_u8(reinterpret_cast<uint8_t*>(to + i), vmovn_u16(words));
  }
  loops::store<Fp8Element<F>>(from + whole, count - whole, scale, to + whole);
}

constexpr CpuKernels::Tile kTiles[kTileRows] = {tile<1>, tile<2>, tile<3>,
                                                tile<4>, tile<5>, tile<6>};

}  // namespace

const CpuKernels kNeonKernels = {
    .strip = kStrip,
    .tile_rows = kTileRows,
    .pack_panel = per_type<CpuKernels::PackPanel>([]<typename T>() { return pack_panel<T>; }),
    .copy_panel = per_type<CpuKernels::CopyPanel>([]<typename T>() { return copy_panel<T>; }),
    .tiles = kTiles,
    .pack_pairs = nullptr,
    .pair_tiles = nullptr,
    .dots = {kNeonF32Dots, kNeonF16Dots, kNeonBf16Dots, nullptr, nullptr, nullptr, nullptr},
    .pair_dots = nullptr,
    .codes = &kNeonCodes,
    .to_float = per_type<CpuKernels::ToFloat>([]<typename T>() { return to_float<T>; }),
    .store = {loops::store<F32Element>, store_f16, loops::store<Bf16Element>,
              store_fp8<Fp8Format::e4m3fn>, store_fp8<Fp8Format::e4m3fnuz>,
              store_fp8<Fp8Format::e5m2>, store_fp8<Fp8Format::e5m2fnuz>},
    .softmax = loops::softmax,
    .activate = per_activation([]<Activation A>() { return loops::activate<A>; }),
    .clamped_swiglu = loops::clamped_swiglu,
    .cap = loops::cap,
    .rotate = loops::rotate,
    .round_f16 = round_f16,
    .round_bf16 = loops::round_bf16,
    .largest_bits = loops::largest_bits,
    .magnitude_bins = loops::magnitude_bins,
    .divide = loops::divide,
    .state_pass = loops::state_pass,
};

}  // namespace fp8kv

#endif
