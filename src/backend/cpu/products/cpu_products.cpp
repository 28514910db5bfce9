#include "backend/cpu/products/cpu_products.h"

#include <array>
#include <cstring>

#include "backend/cpu/products/cpu_unit_products.h"
#include "base/error.h"
#include "core/numbers/half.h"

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

// For f16 numbers: scaled, k block by k block.
void pack_scaled_rows(const CpuKernels& kernels, std::span<const float* const> rows,
                      const PackedRows& packed, int64_t index) {
  alignas(64) float scaled[kPackRows][kTileStride];
  std::array<const float*, kPackRows> from{};
  float* scales = packed.scales() + index;
  for (size_t i = 0; i < rows.size(); ++i) {
    scales[i] = f16_scale(kernels.largest_bits(rows[i], packed.in_dim, 0));
    from[i] = scaled[i];
  }
  for (int64_t b = 0; b < packed.blocks(); ++b) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* row = rows[i] + b * packed.block();
      for (int k = 0; k < packed.depth(b); ++k) scaled[i][k] = row[k] * scales[i];
    }
    pack_unit_rows(kernels, packed.form, std::span(from).first(rows.size()), {0, packed.depth(b)},
                   packed.at(b, index));
  }
}

void pack_strip(const TileRows& rows, const StripWeight& weight, int64_t strip, int64_t k_block,
                const StripMemory& memory) {
  const auto& [view, coded] = weight;
  const int width = rows.kernels.strip, depth = rows.packed.depth(k_block);
  const int64_t element = static_cast<int64_t>(dtype_bytes(view.dtype));
  const int64_t row_bytes = rows.packed.in_dim * element, first = k_block * rows.packed.block();
  uint16_t* decoded = coded == nullptr ? nullptr : decode_buffer(memory.codes, width * depth);
  const std::byte* from[kMaxStrip];
  for (int j = 0; j < width; ++j) {
    const int64_t row = strip * width + j;
    if (row >= view.shape[0]) {
      from[j] = kZeroRow.data();
    } else if (coded == nullptr) {
      from[j] = view.data + row * row_bytes + first * element;
    } else {
      uint16_t* to = decoded + j * depth;
      coded->decode(row, first, depth, to);
      from[j] = reinterpret_cast<const std::byte*>(to);
    }
  }
  if (rows.packed.form == RowForm::bf16_pairs) {
    rows.kernels.pack_pairs(from, depth, memory.panel);
  } else {
    rows.kernels.pack_panel[view.dtype](from, depth, memory.panel);
  }
}

// Writes rows [begin, begin + count) of columns [first, first + strip) of the results.
void write_rows(const float* sums, int64_t width, int64_t first, int64_t begin, int64_t count,
                const ProductsOut& out) {
  const int64_t columns = std::min(width, out.columns - first);
  std::array<float, kMaxStrip> bias{};
  if (out.bias != nullptr) std::copy_n(out.bias + first, columns, bias.data());
  for (int64_t r = begin; r < begin + count; ++r) {
    float* to = out.at + r * out.stride + first;
    const float* from = sums + r * width;
    if (out.add) {
      for (int64_t j = 0; j < columns; ++j) to[j] += from[j] + bias[j];
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j] = from[j] + bias[j];
    }
  }
}

// Fetches what write_rows will write: it lies row by row, and stores would wait for each line.
void fetch_rows(int64_t width, int64_t first, int64_t begin, int64_t count,
                const ProductsOut& out) {
  constexpr int kWrite = 1, kFirstCache = 3;
  const int64_t columns = std::min(width, out.columns - first);
  for (int64_t r = begin; r < begin + count; ++r) {
    const float* to = out.at + r * out.stride + first;
    for (int64_t j = 0; j < columns; j += kCacheLine / static_cast<int64_t>(sizeof(float))) {
      __builtin_prefetch(to + j, kWrite, kFirstCache);
    }
  }
}

// Adds one block of k to sums [rows][strip] of strip `strip` of the results; the first block sets
// them. After the last block, writes the sums of each tile while they are in the first cache.
void multiply_strip(const TileRows& rows, int64_t k_block, int64_t strip, const float* panel,
                    float* sums, const ProductsOut& out) {
  const bool pairs = rows.packed.form == RowForm::bf16_pairs;
  const bool last = k_block + 1 == rows.packed.blocks();
  const CpuKernels::Tile* tiles = pairs ? rows.kernels.pair_tiles : rows.kernels.tiles;
  const int depth = rows.packed.depth(k_block);
  const int steps = pairs ? (depth + 1) / 2 : depth;
  const int64_t width = rows.kernels.strip;
  const int64_t n_tiles = divide_up(rows.n_rows, rows.kernels.tile_rows);
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t begin = part_begin(rows.n_rows, n_tiles, t);
    const int64_t count = part_begin(rows.n_rows, n_tiles, t + 1) - begin;
    if (last) fetch_rows(width, strip * width, begin, count, out);
    tiles[count - 1](rows.packed.at(k_block, rows.first_row + begin), panel, steps,
                     sums + begin * width, width, k_block > 0);
    if (last) write_rows(sums, width, strip * width, begin, count, out);
  }
}

}  // namespace

ProductMethod product_method(const CpuKernels& kernels, const ProductInputs& inputs,
                             RowsCome come) {
  const bool bf16 = inputs.weight == DType::bf16, f16 = inputs.weight == DType::f16;
  const bool few_rows = inputs.computed_as > 0 ? inputs.computed_as <= kMostNamedDotRows
                                               : inputs.rows <= kMostDotRows;
  const bool dots = kernels.dots.f32 != nullptr && few_rows;
  // Dot products are faster for few rows with codes, and with f16 in parts: a unit needs such
  // weights decoded, or split, before.
  if (kernels.matrix_unit != nullptr && (bf16 || f16)) {
    const bool as_f16 = kernels.matrix_unit->f16 != nullptr && come == RowsCome::whole;
    const RowForm of_f16 = as_f16 ? RowForm::unit_f16 : RowForm::unit_two_bf16;
    const RowForm form = bf16 ? RowForm::unit_bf16 : of_f16;
    if (!(dots && (inputs.coded || form == RowForm::unit_two_bf16))) return {form, false};
  }
  if (!bf16) return {RowForm::plain, dots};
  return {kernels.pack_pairs != nullptr ? RowForm::bf16_pairs : RowForm::rounded_to_bf16, dots};
}

int64_t strip_width(const CpuKernels& kernels, RowForm form) {
  return is_for_unit(form) ? kUnitWeights : kernels.strip;
}

void pack_rows(const CpuKernels& kernels, std::span<const float* const> rows,
               const PackedRows& packed, int64_t index) {
  if (packed.form == RowForm::unit_f16) return pack_scaled_rows(kernels, rows, packed, index);
  std::array<const float*, kPackRows> from{};
  for (int64_t b = 0; b < packed.blocks(); ++b) {
    for (size_t i = 0; i < rows.size(); ++i) from[i] = rows[i] + b * packed.block();
    pack_part(kernels, std::span(from).first(rows.size()), {b * packed.block(), packed.depth(b)},
              packed, index);
  }
}

void pack_part(const CpuKernels& kernels, std::span<const float* const> rows,
               const ElementRange& elements, const PackedRows& packed, int64_t index) {
  FP8KV_ASSERT(packed.form != RowForm::unit_f16);
  const int64_t within = elements.first % packed.block();
  const int64_t k_block = elements.first / packed.block();
  if (is_for_unit(packed.form)) {
    return pack_unit_rows(kernels, packed.form, rows, {within, elements.count},
                          packed.at(k_block, index));
  }
  const int64_t at = packed.form == RowForm::bf16_pairs ? within / 2 : within;
  for (size_t i = 0; i < rows.size(); ++i) {
    float* to = packed.at(k_block, index + static_cast<int64_t>(i)) + at;
    prepare(kernels, packed.form, rows[i], elements.count, to);
  }
}

int64_t panel_floats(const CpuKernels& kernels, RowForm form, int64_t n_rows, int64_t n_strips) {
  const int64_t width = strip_width(kernels, form);
  const int64_t sums =
      is_for_unit(form) ? unit_sums_floats(n_rows, n_strips) : n_strips * n_rows * width;
  return kTileStride * width + sums;
}

void multiply_strips(const TileRows& rows, const WeightRows& weight, const StripRange& strips,
                     const ProductsOut& out, const StripMemory& memory) {
  std::optional<CodedRows> coded;
  if (weight.codes) coded.emplace(rows.kernels, *weight.codes, weight.view.dtype, memory.codes);
  const StripWeight read{weight.view, coded ? &*coded : nullptr};
  if (is_for_unit(rows.packed.form)) {
    return multiply_unit_strips(rows, read, strips, out, memory);
  }
  const int64_t width = rows.kernels.strip, size = rows.n_rows * width;
  float* sums = memory.panel + kTileStride * width;
  for (int64_t b = 0; b < rows.packed.blocks(); ++b) {
    for (int64_t s = 0; s < strips.count; ++s) {
      pack_strip(rows, read, strips.first + s, b, memory);
      multiply_strip(rows, b, s, memory.panel, sums + s * size, out);
    }
  }
}

DotWeights::DotWeights(const DotRows& rows, const WeightRows& weight, CodeScratch& scratch)
    : weight_(weight),
      dots_(rows.form == RowForm::bf16_pairs ? rows.kernels.pair_dots
                                             : rows.kernels.dots[weight.view.dtype]),
      scratch_(scratch) {
  if (!weight.codes) return;
  coded_.emplace(rows.kernels, *weight.codes, weight.view.dtype, scratch);
  decoded_ = rows.n > kMaxDotRows || !coded_->has_dots();
}

void DotWeights::go_to(int64_t first, int64_t count) {
  for (int64_t w = 0; w < kDotWeights; ++w) {
    rows_[static_cast<size_t>(w)] = first + std::min(w, count - 1);
  }
  if (coded_ && !decoded_) return;
  uint16_t* to = decoded_ ? decode_buffer(scratch_, kDotWeights * in_dim()) : nullptr;
  for (size_t w = 0; w < kDotWeights; ++w) {
    if (decoded_) {
      coded_->decode(rows_[w], 0, in_dim(), to);
      from_[w] = reinterpret_cast<const std::byte*>(to);
      to += in_dim();
    } else {
      const auto bytes = static_cast<int64_t>(dtype_bytes(weight_.view.dtype));
      from_[w] = weight_.view.data + rows_[w] * in_dim() * bytes;
    }
  }
}

void DotWeights::multiply(const float* x, int64_t x_stride, int64_t n, float* out) {
  if (coded_ && !decoded_) return coded_->dots(rows_.data(), x, x_stride, n, out);
  dots_[n - 1](from_.data(), x, x_stride, in_dim(), out);
}

int64_t dot_stride(RowForm form, int64_t in_dim) {
  return form == RowForm::bf16_pairs ? divide_up(in_dim, 2) : in_dim;
}

void prepare_dot_row(const CpuKernels& kernels, RowForm form, const float* from, int64_t in_dim,
                     float* to) {
  prepare(kernels, form, from, in_dim, to);
}

}  // namespace fp8kv
