#include "backend/cpu/cpu_products.h"

#include <array>
#include <cstring>

#include "core/half.h"

namespace fp8kv {
namespace {

// Stands in for the rows of a weight past its last one.
alignas(64) constexpr std::array<std::byte, kTileStride * sizeof(float)> kZeroRow{};

void pack_pairs(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count / 2; ++i) {
    const uint32_t low = bf16_from_float(from[2 * i]);
    const uint32_t high = bf16_from_float(from[2 * i + 1]);
    to[i] = float_from_bits(low | high << 16);
  }
  if (count % 2 != 0) to[count / 2] = float_from_bits(bf16_from_float(from[count - 1]));
}

void prepare(const CpuKernels& kernels, RowForm form, const float* from, int64_t count, float* to) {
  if (form == RowForm::bf16_pairs) return pack_pairs(from, count, to);
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  if (form == RowForm::rounded_to_bf16) kernels.round_bf16(to, count);
}

void pack_strip(const TileRows& rows, const ConstTensorView& weight, int64_t strip, int64_t k_block,
                float* panel) {
  const int width = rows.kernels.strip;
  const int64_t element = static_cast<int64_t>(dtype_bytes(weight.dtype));
  const int64_t row_bytes = rows.packed.in_dim * element;
  const std::byte* from[kMaxStrip];
  for (int j = 0; j < width; ++j) {
    const int64_t row = strip * width + j;
    from[j] = row < weight.shape[0]
                  ? weight.data + row * row_bytes + k_block * rows.packed.block * element
                  : kZeroRow.data();
  }
  const int depth = rows.packed.depth(k_block);
  if (rows.form == RowForm::bf16_pairs) {
    rows.kernels.pack_pairs(from, depth, panel);
  } else {
    rows.kernels.pack_panel[weight.dtype](from, depth, panel);
  }
}

// sums [rows][strip] gets one block of k added to it, or is set by the first.
void multiply_strip(const TileRows& rows, int64_t k_block, const float* panel, float* sums) {
  const bool pairs = rows.form == RowForm::bf16_pairs;
  const CpuKernels::Tile* tiles = pairs ? rows.kernels.pair_tiles : rows.kernels.tiles;
  const int depth = rows.packed.depth(k_block);
  const int steps = pairs ? (depth + 1) / 2 : depth;
  const int64_t width = rows.kernels.strip;
  const int64_t n_tiles = divide_up(rows.n_rows, rows.kernels.tile_rows);
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t begin = part_begin(rows.n_rows, n_tiles, t);
    const int64_t count = part_begin(rows.n_rows, n_tiles, t + 1) - begin;
    tiles[count - 1](rows.packed.at(k_block, rows.first_row + begin), panel, steps,
                     sums + begin * width, width, k_block > 0);
  }
}

}  // namespace

bool takes_dots(const CpuKernels& kernels, int64_t rows, int64_t computed_as) {
  if (kernels.dots.f32 == nullptr) return false;
  return computed_as > 0 ? computed_as <= kMostNamedDotRows : rows <= kMostDotRows;
}

RowForm row_form(const CpuKernels& kernels, DType weight) {
  if (weight != DType::bf16) return RowForm::plain;
  return kernels.pack_pairs != nullptr ? RowForm::bf16_pairs : RowForm::rounded_to_bf16;
}

void pack_row(const CpuKernels& kernels, RowForm form, const float* row, const PackedRows& packed,
              int64_t index) {
  for (int64_t b = 0; b < packed.blocks(); ++b) {
    prepare(kernels, form, row + b * packed.block, packed.depth(b), packed.at(b, index));
  }
}

void pack_part(const CpuKernels& kernels, RowForm form, const float* from, int64_t first,
               int64_t count, const PackedRows& packed, int64_t index) {
  const int64_t within = first % packed.block;
  float* to = packed.at(first / packed.block, index);
  prepare(kernels, form, from, count, to + (form == RowForm::bf16_pairs ? within / 2 : within));
}

void multiply_strips(const TileRows& rows, const ConstTensorView& weight, int64_t first_strip,
                     int64_t n_strips, float* panel, float* sums) {
  const int64_t size = rows.n_rows * rows.kernels.strip;
  for (int64_t b = 0; b < rows.packed.blocks(); ++b) {
    for (int64_t s = 0; s < n_strips; ++s) {
      pack_strip(rows, weight, first_strip + s, b, panel);
      multiply_strip(rows, b, panel, sums + s * size);
    }
  }
}

int64_t dot_stride(RowForm form, int64_t in_dim) {
  return form == RowForm::bf16_pairs ? divide_up(in_dim, 2) : in_dim;
}

void prepare_dot_row(const CpuKernels& kernels, RowForm form, const float* from, int64_t in_dim,
                     float* to) {
  prepare(kernels, form, from, in_dim, to);
}

}  // namespace fp8kv
