// Rows of activations, prepared for products. Internal to backend/cpu.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/products/cpu_coded_rows.h"

namespace fp8kv {

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// How activations are prepared for weights of a type. The last three are a matrix unit's: for bf16
// weights, for f16 weights in two bf16 parts, and for f16 weights in f16.
enum class RowForm { plain, rounded_to_bf16, bf16_pairs, unit_bf16, unit_two_bf16, unit_f16 };

constexpr bool is_for_unit(RowForm form) {
  return form >= RowForm::unit_bf16;
}

// Elements of in_dim in kTileStride steps.
constexpr int64_t step_elements(RowForm form) {
  return form == RowForm::bf16_pairs || form == RowForm::unit_bf16 ? 2 * kTileStride : kTileStride;
}

// Up to this many rows are prepared at once. A batch to pack begins at a multiple of it.
inline constexpr int64_t kPackRows = kUnitRows;

// Rows for tiles, cut along k: [k blocks][rows][kTileStride] steps. A matrix unit gets blocks of
// kPackRows rows in MatrixUnit's layout. Each row of unit_f16 is multiplied by a power of two, its
// scale.
struct PackedRows {
  float* data;
  int64_t n;
  int64_t in_dim;
  RowForm form;

  int64_t block() const { return step_elements(form); }
  int64_t blocks() const { return divide_up(in_dim, block()); }
  // Rows that the memory has room for.
  int64_t padded_rows() const {
    return is_for_unit(form) ? divide_up(n, kPackRows) * kPackRows : n;
  }
  size_t floats() const {
    const int64_t of_scales = form == RowForm::unit_f16 ? padded_rows() : 0;
    return static_cast<size_t>(blocks() * padded_rows() * kTileStride + of_scales);
  }
  // [padded_rows]; null: the form has no scales
  float* scales() const {
    return form == RowForm::unit_f16 ? data + blocks() * padded_rows() * kTileStride : nullptr;
  }
  float* at(int64_t k_block, int64_t row) const {
    return data + (k_block * padded_rows() + row) * kTileStride;
  }
  int depth(int64_t k_block) const {
    return static_cast<int>(std::min(block(), in_dim - k_block * block()));
  }
};

// Rows that are multiplied together.
struct TileRows {
  const CpuKernels& kernels;
  PackedRows packed;
  int64_t first_row;  // first row to multiply, within `packed`
  int64_t n_rows;
};

// Rows that are prepared for dot products.
struct DotRows {
  const CpuKernels& kernels;
  RowForm form;
  const float* data;
  int64_t stride;  // floats between rows
  int64_t n;
};

// Consecutive elements of rows.
struct ElementRange {
  int64_t first;
  int64_t count;
};

// Consecutive rows of a weight.
struct WeightRange {
  int64_t begin;
  int64_t end;
};

// Consecutive strips of a weight.
struct StripRange {
  int64_t first;
  int64_t count;
};

// A thread's working memory for products in strips.
struct StripMemory {
  float* panel;  // room for panel_floats
  CodeScratch& codes;
};

// Destination of products: rows `stride` floats apart, with the columns of all strips.
struct ProductsOut {
  float* at;
  int64_t stride;
  int64_t columns;
  const float* bias = nullptr;  // [columns], added to each row; null: nothing
  bool add = false;             // add to the values there
};

}  // namespace fp8kv
