// Plain C++: runs on every processor, and is the reference for the other tables.
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"

namespace fp8kv {
namespace {

constexpr int kStrip = 8;
constexpr int kTileRows = 4;

template <typename Element>
void pack_panel(const std::byte* const* rows, int depth, float* panel) {
  for (int j = 0; j < kStrip; ++j) {
    for (int k = 0; k < depth; ++k) {
      panel[k * kStrip + j] = Element::load(rows[j] + k * Element::kBytes);
    }
  }
}

template <typename Element>
void copy_panel(const std::byte* const* rows, int n_rows, int columns, float* panel) {
  for (int r = 0; r < n_rows; ++r) {
    loops::copy_row<Element>(rows[r], columns, kStrip, panel + r * kStrip);
  }
}

template <int Rows>
void tile(const float* a, const float* panel, int depth, float* c, int64_t c_stride, bool add) {
  float sum[Rows][kStrip] = {};
  for (int k = 0; k < depth; ++k) {
    for (int r = 0; r < Rows; ++r) {
      for (int j = 0; j < kStrip; ++j) {
        sum[r][j] += a[r * kTileStride + k] * panel[k * kStrip + j];
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < kStrip; ++j) {
      float& out = c[r * c_stride + j];
      out = add ? out + sum[r][j] : sum[r][j];
    }
  }
}

constexpr CpuKernels::Tile kTiles[kTileRows] = {tile<1>, tile<2>, tile<3>, tile<4>};

}  // namespace

const CpuKernels kPortableKernels = {
    .strip = kStrip,
    .tile_rows = kTileRows,
    .pack_panel = per_type<CpuKernels::PackPanel>([]<typename T>() { return pack_panel<T>; }),
    .copy_panel = per_type<CpuKernels::CopyPanel>([]<typename T>() { return copy_panel<T>; }),
    .tiles = kTiles,
    .pack_pairs = nullptr,
    .pair_tiles = nullptr,
    .dots = {},
    .pair_dots = nullptr,
    .codes = &kPortableCodes,
    .to_float = per_type<CpuKernels::ToFloat>([]<typename T>() { return loops::to_float<T>; }),
    .store = per_type<CpuKernels::Store>([]<typename T>() { return loops::store<T>; }),
    .softmax = loops::softmax,
    .activate = per_activation([]<Activation A>() { return loops::activate<A>; }),
    .clamped_swiglu = loops::clamped_swiglu,
    .cap = loops::cap,
    .rotate = loops::rotate,
    .round_f16 = loops::round_f16,
    .round_bf16 = loops::round_bf16,
    .largest_bits = loops::largest_bits,
    .magnitude_bins = loops::magnitude_bins,
    .divide = loops::divide,
    .state_pass = loops::state_pass,
};

}  // namespace fp8kv
