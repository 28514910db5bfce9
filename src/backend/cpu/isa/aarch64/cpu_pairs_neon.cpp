// Products of bf16 pairs by the instructions of FEAT_BF16. Sums round to odd, and subnormal numbers
// are zero, since FPCR.EBF is 0 in every program that Linux starts. BFMMLA equals two BFDOT one
// after the other.
//   Source: Arm Architecture Reference Manual, BFMatMulAddH, BFDotAdd
#if defined(__aarch64__)

#include <cstring>

#include "backend/cpu/isa/aarch64/cpu_neon_sums.h"
#include "backend/cpu/isa/common/cpu_kernels.h"

namespace fp8kv {
namespace {

constexpr int kStrip = 2 * neon::kLanes;
// Six rows, like the f32 tiles. Three pairs of rows with eight pairs of columns are 24
// accumulators; with the rows and a vector of the panel that makes 28 of 32 registers.
constexpr int kTileRows = 6;
constexpr int kColumnPairs = kStrip / 2;

// A panel is [steps of four elements][strip] of four bf16 each, zeros after the last: two columns
// side by side are an operand of BFMMLA.
void pack_pairs(const std::byte* const* rows, int depth, float* panel) {
  const int whole = depth / 4 * 4;
  auto* to = reinterpret_cast<std::byte*>(panel);
  for (int j = 0; j < kStrip; ++j) {
    for (int k = 0; k < whole; k += 4) {
      std::memcpy(to + (k / 4 * kStrip + j) * 8, rows[j] + 2 * k, 8);
    }
  }
  if (whole == depth) return;
  for (int j = 0; j < kStrip; ++j) {
    uint64_t last = 0;
    std::memcpy(&last, rows[j] + 2 * whole, static_cast<size_t>(depth - whole) * 2);
    std::memcpy(to + (whole / 4 * kStrip + j) * 8, &last, 8);
  }
}

// Two pairs of a row, or one and zeros.
inline float32x2_t pairs_of(const float* row, bool both) {
  return both ? vld1_f32(row) : vld1_lane_f32(row, vdup_n_f32(0), 0);
}

// Adds the products of one step of four elements; `both`: its two pairs exist, else only the first.
template <int Rows>
FP8KV_NEON_BF16 [[gnu::always_inline]] inline void add_step(
    const float* a, const float* panel, bool both,
    float32x4_t (&sum)[(Rows + 1) / 2][kColumnPairs]) {
  bfloat16x8_t x[(Rows + 1) / 2];
#pragma GCC unroll 3
  for (int p = 0; p < (Rows + 1) / 2; ++p) {
    const float* row = a + 2 * p * kTileStride;
    const float32x2_t first = pairs_of(row, both);
    const float32x2_t second = 2 * p + 1 < Rows ? pairs_of(row + kTileStride, both) : vdup_n_f32(0);
    x[p] = vreinterpretq_bf16_f32(vcombine_f32(first, second));
  }
#pragma GCC unroll 8
  for (int j = 0; j < kColumnPairs; ++j) {
    const bfloat16x8_t columns = vreinterpretq_bf16_f32(vld1q_f32(panel + 4 * j));
#pragma GCC unroll 3
    for (int p = 0; p < (Rows + 1) / 2; ++p) sum[p][j] = vbfmmlaq_f32(sum[p][j], x[p], columns);
  }
}

// See CpuKernels::Tile; a step is a pair.
template <int Rows>
FP8KV_NEON_BF16 void pair_tile(const float* a, const float* panel, int depth, float* c,
                               int64_t c_stride, bool add) {
  // [pair of rows][pair of columns], 2 x 2 sums each.
  float32x4_t sum[(Rows + 1) / 2][kColumnPairs];
#pragma GCC unroll 3
  for (auto& of_rows : sum) {
#pragma GCC unroll 8
    for (float32x4_t& each : of_rows) each = vdupq_n_f32(0);
  }
  int k = 0;
  for (; k + 1 < depth; k += 2) add_step<Rows>(a + k, panel + k * kStrip, true, sum);
  if (k < depth) add_step<Rows>(a + k, panel + k * kStrip, false, sum);
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumnPairs; j += 2) {
      const float64x2_t left = vreinterpretq_f64_f32(sum[r / 2][j]);
      const float64x2_t right = vreinterpretq_f64_f32(sum[r / 2][j + 1]);
      const float32x4_t four =
          vreinterpretq_f32_f64(r % 2 == 0 ? vzip1q_f64(left, right) : vzip2q_f64(left, right));
      float* out = c + r * c_stride + 2 * j;
      vst1q_f32(out, add ? vaddq_f32(vld1q_f32(out), four) : four);
    }
  }
}

constexpr CpuKernels::Tile kPairTiles[kTileRows] = {pair_tile<1>, pair_tile<2>, pair_tile<3>,
                                                    pair_tile<4>, pair_tile<5>, pair_tile<6>};

}  // namespace

void take_neon_pairs(CpuKernels& kernels) {
  kernels.pack_pairs = pack_pairs;
  kernels.pair_tiles = kPairTiles;
  kernels.pair_dots = kNeonPairDots;
  kernels.codes = &kNeonBf16Codes;
}

}  // namespace fp8kv

#endif
