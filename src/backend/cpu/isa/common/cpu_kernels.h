// The inner loops of the CPU backend, one table per instruction set. All tables share their
// callers.
//
// Matrix products, in projections and in attention, all use one tile:
//   c[r][j] = sum over k of a[r][k] * panel[k][j]      r < rows <= tile_rows, j < strip, k < depth
// with k in ascending order in one accumulator. So an element's bits depend neither on its tile,
// nor on the number of rows, nor on the caller.
// Projections of few rows are bound by memory and go another way: dot products along the weights in
// their own order, in lanes, kMaxDotRows rows at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cpu/isa/common/cpu_code_kernels.h"
#include "backend/cpu/isa/common/cpu_matrix_unit.h"
#include "backend/cpu/isa/common/cpu_per_type.h"
#include "core/model/block.h"
#include "core/model/experts.h"
#include "core/model/recurrence.h"
#include "core/numbers/dtype.h"
#include "core/numbers/softmax_state.h"

namespace fp8kv {

// Rows of a tile's left operand are this many 4-byte steps apart, for any depth.
inline constexpr int kTileStride = 256;
inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxStrip = 32;
// Rows of a tile that is made without a panel.
inline constexpr int kMaxRowTiles = 8;
inline constexpr int kKeyDepth = 64;

// A token's write to a block of a state, and its read from it: see CpuKernels::StatePass.
struct StateWrite {
  const float* k = nullptr;      // [k_dim]
  const float* delta = nullptr;  // [kStateColumns]
  const float* decay = nullptr;  // [k_dim], `decay_step` apart
  int64_t decay_step = 0;        // 1, or 0: one decay for all
};
struct StateRead {
  const float* k = nullptr;  // [k_dim]
  const float* q = nullptr;  // [k_dim]
  float* of_k = nullptr;     // [kStateColumns]
  float* of_q = nullptr;     // [kStateColumns]
};

struct CpuKernels {
  // Transposes `strip` rows of `depth` elements each, at any alignment, into a panel
  // [depth][strip], f32.
  using PackPanel = void (*)(const std::byte* const* rows, int depth, float* panel);
  // Copies `columns` elements of each row, at any alignment, into a panel [n_rows][strip], f32. The
  // panel's other columns become zero. REQUIRES columns <= strip.
  using CopyPanel = void (*)(const std::byte* const* rows, int n_rows, int columns, float* panel);
  // The tile above: a [rows][kTileStride], panel [depth][strip], 64-byte aligned. Adds to c
  // [rows][strip], rows `c_stride` apart, or overwrites it.
  using Tile = void (*)(const float* a, const float* panel, int depth, float* c, int64_t c_stride,
                        bool add);
  // c[r][j] += sum over k of a[r][k] * rows[k][j], j < columns, with the tile's bits: the sum is
  // made first, then added. One function per number of rows of `a`. Elements of `rows` at any
  // alignment. REQUIRES whole strips of columns.
  using RowTile = void (*)(const float* a, const std::byte* const* rows, int depth, int64_t columns,
                           float* c, int64_t c_stride);
  // c[r][j] = sum over k of a[r][k] * keys[j][k], j < strip, with the tile's bits. One function per
  // number of rows of `a`. Elements of `keys` at any alignment. REQUIRES a depth that is a multiple
  // of kKeyDepth, and at most kTileStride.
  using KeyTile = void (*)(const float* a, const std::byte* const* keys, int depth, float* c,
                           int64_t c_stride);
  // out[r * kDotWeights + w] = sum over k < count of weights[w][k] * x[r * x_stride + k]. One
  // function per number of rows r. Weights at any alignment.
  using Dots = void (*)(const std::byte* const* weights, const float* x, int64_t x_stride,
                        int64_t count, float* out);
  // Converts `count` elements at any alignment to f32, exactly.
  using ToFloat = void (*)(const std::byte* from, int64_t count, float* to);
  // Rounds x to the cache's type; fp8: encodes x / scale. `to` at any alignment.
  using Store = void (*)(const float* from, int64_t count, float scale, std::byte* to);
  // Replaces the scores of tokens [begin, end) of a block by exp(score * scale - new max), and the
  // other scores of [0, count) by 0. Updates `state` and returns exp(old max - new max), by which
  // the caller multiplies its earlier sums. `scores` has room for a multiple of 16. REQUIRES begin
  // < end.
  using Softmax = float (*)(float* scores, int begin, int end, int count, float scale,
                            SoftmaxState& state);
  // x[i] = activation(x[i]) * up[i], or activation(x[i]) if `up` is null.
  using Activate = void (*)(float* x, const float* up, int64_t count);
  // gate[i] = the SwiGLU of gate[i] and up[i], clamped by `how`.
  using ClampSwiglu = void (*)(float* gate, const float* up, int64_t count,
                               const ClampedSwiglu& how);
  // x[i] = cap * tanh(multiplier * x[i] / cap)
  using Cap = void (*)(float* x, int64_t count, float multiplier, float cap);
  // Rotates (x[i], x[i + half]) by the angle with cosine rope[i] and sine rope[half + i].
  using Rotate = void (*)(float* x, const float* rope, int half);
  // Rounds x in place.
  using Round = void (*)(float* x, int64_t count);
  // The bits of the largest magnitude of x, or `least` if it is larger; `least` is bits too. The
  // bits of infinity and NaN rank above all others.
  using LargestBits = uint32_t (*)(const float* x, int64_t count, uint32_t least);
  // bins[i] = magnitude_bin of |x[i]|. Returns LargestBits with `least` 0.
  using MagnitudeBins = uint32_t (*)(const float* x, int64_t count, uint32_t* bins);
  // x[i] /= by
  using Divide = void (*)(float* x, int64_t count, float by);
  // Passes over a block of a state [k_dim][kStateColumns], 64-byte aligned. With `write`,
  // state[i][j] = state[i][j] * decay + k[i] * delta[j]. Then with `read`, of_k[j] = sum over i of
  // state[i][j] * k[i], and of_q[j] the same with q. Each may be null; both together have the bits
  // of one after the other.
  using StatePass = void (*)(float* state, int64_t k_dim, const StateWrite* write,
                             const StateRead* read);

  int strip;
  int tile_rows;
  PerType<PackPanel> pack_panel;
  PerType<CopyPanel> copy_panel;
  const Tile* tiles;  // [tile_rows]: for 1, 2, ... rows

  // [kMaxRowTiles]: for 1, 2, ... rows. Null: the caller makes panels.
  PerType<const RowTile*> row_tiles = {};
  PerType<const KeyTile*> key_tiles = {};

  // Products of bf16 pairs, or null. A step in `a` is then two adjacent bf16 elements; the panel's
  // layout is private to these two. `pair_tiles` counts depth in steps, `pack_pairs` in elements.
  PackPanel pack_pairs;
  const Tile* pair_tiles;

  // [kMaxDotRows]: for 1, 2, ... rows. Null: the tile serves. `pair_dots` take bf16 weights and x
  // of bf16 pairs, two to a float of x; an odd last one stands alone.
  PerType<const Dots*> dots;
  const Dots* pair_dots;
  const CodeKernels* codes;

  // Takes all products with 16-bit weights, for any number of rows; null: no unit.
  const MatrixUnit* matrix_unit = nullptr;

  PerType<ToFloat> to_float;
  PerType<Store> store;
  Softmax softmax;
  std::array<Activate, kActivations> activate;  // in the order of Activation
  ClampSwiglu clamped_swiglu;
  Cap cap;
  Rotate rotate;
  Round round_f16;
  Round round_bf16;
  LargestBits largest_bits;
  MagnitudeBins magnitude_bins;
  Divide divide;
  StatePass state_pass;
};

extern const CpuKernels kPortableKernels;
#if defined(__x86_64__)
extern const CpuKernels kAvx2Kernels;
extern const CpuKernels::Dots kAvx2F32Dots[kMaxDotRows];
extern const CpuKernels::Dots kAvx2F16Dots[kMaxDotRows];
extern const CpuKernels::Dots kAvx2Bf16Dots[kMaxDotRows];
extern const CpuKernels kAvx512Kernels;
extern const CpuKernels kAvx512Bf16Kernels;
float softmax_avx512(float* scores, int begin, int end, int count, float scale,
                     SoftmaxState& state);
// Replaces the functions that make panels of fp8 codes, for processors with AVX512_VBMI: the same
// floats, from tables in registers.
void take_vbmi_panels(CpuKernels& kernels);
// Adds tiles without a panel, for all types.
void take_vbmi_row_tiles(CpuKernels& kernels);
// Adds key_tiles for fp8.
void take_vbmi_key_tiles(CpuKernels& kernels);
#endif
#if defined(__aarch64__)
extern const CpuKernels kNeonKernels;
extern const CpuKernels::Dots kNeonF32Dots[kMaxDotRows];
extern const CpuKernels::Dots kNeonF16Dots[kMaxDotRows];
extern const CpuKernels::Dots kNeonBf16Dots[kMaxDotRows];
extern const CpuKernels::Dots kNeonPairDots[kMaxDotRows];  // with FEAT_BF16
// Adds products of bf16 pairs, for processors with FEAT_BF16.
void take_neon_pairs(CpuKernels& kernels);
#endif

}  // namespace fp8kv
