#include "backend/cpu/cpu_linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace fp8kv {
namespace {

// How activations have to be prepared for a projection.
enum class RowForm { plain, rounded_to_bf16, bf16_pairs };

// Rows in one go: with kTileStride steps each they fill half of a 1 MiB L2 cache.
constexpr int64_t kBlockRows = 512;
// Strips whose sums are kept at once; the packed rows are read once for all of them.
constexpr int64_t kUnitStrips = 2;
// Pieces of work a thread should find, so that a slow one does not hold up the rest.
constexpr int64_t kJobsPerThread = 4;

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Part `part` of `parts` nearly equal ones of [0, n) begins here.
constexpr int64_t part_begin(int64_t n, int64_t parts, int64_t part) {
  return n * part / parts;
}

// A block of rows, cut along k: [k blocks][rows][kTileStride] steps.
struct PackedRows {
  float* data;
  int64_t n;
  int64_t in_dim;
  int64_t block;  // elements of in_dim in kTileStride steps

  int64_t blocks() const { return divide_up(in_dim, block); }
  float* at(int64_t k_block, int64_t row) const { return data + (k_block * n + row) * kTileStride; }
  int depth(int64_t k_block) const {
    return static_cast<int>(std::min(block, in_dim - k_block * block));
  }
};

RowForm row_form(const CpuKernels& kernels, DType weight) {
  if (weight != DType::bf16) return RowForm::plain;
  return kernels.pack_pairs != nullptr ? RowForm::bf16_pairs : RowForm::rounded_to_bf16;
}

void pack_pairs(const float* from, int count, float* to) {
  for (int i = 0; i < count / 2; ++i) {
    const uint32_t low = bf16_from_float(from[2 * i]);
    const uint32_t high = bf16_from_float(from[2 * i + 1]);
    to[i] = float_from_bits(low | high << 16);
  }
  if (count % 2 != 0) to[count / 2] = float_from_bits(bf16_from_float(from[count - 1]));
}

void pack_row(const CpuKernels& kernels, RowForm form, const float* row, const PackedRows& packed,
              int64_t index) {
  for (int64_t b = 0; b < packed.blocks(); ++b) {
    const float* from = row + b * packed.block;
    float* to = packed.at(b, index);
    const int count = packed.depth(b);
    if (form == RowForm::bf16_pairs) {
      pack_pairs(from, count, to);
      continue;
    }
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    if (form == RowForm::rounded_to_bf16) kernels.round_bf16(to, count);
  }
}

// Strips [first_strip, end_strip) of one projection for rows [first_row, end_row): one job.
struct Piece {
  const Projection* projection;
  int64_t first_strip;
  int64_t end_strip;
  int64_t first_row;
  int64_t end_row;

  int64_t n_strips() const { return end_strip - first_strip; }
  int64_t n_rows() const { return end_row - first_row; }
};

// What all jobs of a block of rows share.
struct Block {
  const CpuKernels& kernels;
  RowForm form;
  PackedRows rows;
  int64_t first_row;  // of the block within x and out
};

// Stands in for the rows of a weight past its last one.
alignas(64) constexpr std::array<std::byte, kTileStride * sizeof(float)> kZeroRow{};

void pack_strip(const Block& block, const ConstTensorView& weight, int64_t strip, int64_t k_block,
                float* panel) {
  const int width = block.kernels.strip;
  const int64_t element = static_cast<int64_t>(dtype_bytes(weight.dtype));
  const int64_t row_bytes = block.rows.in_dim * element;
  const std::byte* rows[kMaxStrip];
  for (int j = 0; j < width; ++j) {
    const int64_t row = strip * width + j;
    rows[j] = row < weight.shape[0]
                  ? weight.data + row * row_bytes + k_block * block.rows.block * element
                  : kZeroRow.data();
  }
  const int depth = block.rows.depth(k_block);
  if (block.form == RowForm::bf16_pairs) {
    block.kernels.pack_pairs(rows, depth, panel);
  } else {
    block.kernels.pack_panel[weight.dtype](rows, depth, panel);
  }
}

// sums [rows of the piece][strip] gets one block of k added to it, or is set by the first.
void multiply_strip(const Block& block, const Piece& piece, int64_t k_block, const float* panel,
                    float* sums) {
  const bool pairs = block.form == RowForm::bf16_pairs;
  const CpuKernels::Tile* tiles = pairs ? block.kernels.pair_tiles : block.kernels.tiles;
  const int depth = block.rows.depth(k_block);
  const int steps = pairs ? (depth + 1) / 2 : depth;
  const int64_t width = block.kernels.strip;
  const int64_t n_tiles = divide_up(piece.n_rows(), block.kernels.tile_rows);
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t begin = part_begin(piece.n_rows(), n_tiles, t);
    const int64_t rows = part_begin(piece.n_rows(), n_tiles, t + 1) - begin;
    tiles[rows - 1](block.rows.at(k_block, piece.first_row + begin), panel, steps,
                    sums + begin * width, width, k_block > 0);
  }
}

void write_strip(const Block& block, const Piece& piece, int64_t strip, const float* sums) {
  const int64_t width = block.kernels.strip;
  const int64_t out_dim = piece.projection->weight.shape[0];
  const int64_t first = strip * width;
  const int64_t count = std::min(width, out_dim - first);
  std::array<float, kMaxStrip> bias{};
  if (const auto& given = piece.projection->bias) {
    const int64_t offset = first * static_cast<int64_t>(dtype_bytes(given->dtype));
    block.kernels.to_float[given->dtype](given->data + offset, count, bias.data());
  }
  float* out = piece.projection->out.as<float>();
  for (int64_t r = 0; r < piece.n_rows(); ++r) {
    float* to = out + (block.first_row + piece.first_row + r) * out_dim + first;
    const float* from = sums + r * width;
    if (piece.projection->accumulate) {
      for (int64_t j = 0; j < count; ++j) to[j] += from[j] + bias[j];
    } else {
      for (int64_t j = 0; j < count; ++j) to[j] = from[j] + bias[j];
    }
  }
}

void compute(const Block& block, const Piece& piece, Scratch& scratch) {
  const int64_t width = block.kernels.strip;
  const int64_t sums_size = piece.n_rows() * width;
  float* panel = scratch.floats(kTileStride * width + piece.n_strips() * sums_size);
  float* sums = panel + kTileStride * width;
  for (int64_t b = 0; b < block.rows.blocks(); ++b) {
    for (int64_t s = 0; s < piece.n_strips(); ++s) {
      pack_strip(block, piece.projection->weight, piece.first_strip + s, b, panel);
      multiply_strip(block, piece, b, panel, sums + s * sums_size);
    }
  }
  for (int64_t s = 0; s < piece.n_strips(); ++s) {
    write_strip(block, piece, piece.first_strip + s, sums + s * sums_size);
  }
}

// Cuts all projections of a block into jobs. How is a matter of speed alone: no result depends on
// it.
std::vector<Piece> make_pieces(const CpuKernels& kernels, int64_t threads, int64_t n_rows,
                               std::span<const Projection* const> projections) {
  int64_t strips = 0;
  for (const Projection* each : projections) {
    strips += divide_up(each->weight.shape[0], kernels.strip);
  }
  const int64_t wanted = threads == 1 ? 1 : threads * kJobsPerThread;
  const int64_t unit = std::clamp<int64_t>(strips / wanted, 1, kUnitStrips);
  // Rows are cut only where there are too few strips to go round, and then not below a few tiles.
  const int64_t row_parts =
      std::clamp<int64_t>(wanted / std::max<int64_t>(strips, 1), 1,
                          std::max<int64_t>(1, n_rows / (4 * kernels.tile_rows)));
  std::vector<Piece> pieces;
  for (const Projection* each : projections) {
    const int64_t n_strips = divide_up(each->weight.shape[0], kernels.strip);
    for (int64_t strip = 0; strip < n_strips; strip += unit) {
      for (int64_t part = 0; part < row_parts; ++part) {
        pieces.push_back({each, strip, std::min(strip + unit, n_strips),
                          part_begin(n_rows, row_parts, part),
                          part_begin(n_rows, row_parts, part + 1)});
      }
    }
  }
  return pieces;
}

void multiply(const CpuKernels& kernels, RowForm form, ThreadPool& pool, LinearScratch& scratch,
              const ConstTensorView& x, std::span<const Projection* const> projections) {
  const int64_t n = x.shape[0];
  const int64_t in_dim = x.shape[1];
  const int64_t k_block = form == RowForm::bf16_pairs ? 2 * kTileStride : kTileStride;
  const int64_t row_blocks = divide_up(n, kBlockRows);
  for (int64_t i = 0; i < row_blocks; ++i) {
    const int64_t first = part_begin(n, row_blocks, i);
    const int64_t rows = part_begin(n, row_blocks, i + 1) - first;
    PackedRows packed{nullptr, rows, in_dim, k_block};
    packed.data = scratch.rows.floats(static_cast<size_t>(packed.blocks() * rows * kTileStride));
    pool.run(rows, [&](int64_t row, int /*thread*/) {
      pack_row(kernels, form, x.as<float>() + (first + row) * in_dim, packed, row);
    });
    const Block block{kernels, form, packed, first};
    const std::vector<Piece> pieces = make_pieces(kernels, pool.threads(), rows, projections);
    pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t job, int thread) {
      compute(block, pieces[job], scratch.threads[thread]);
    });
  }
}

// Rows of a weight in one job of dot products: half a megabyte of a 4096-wide bf16 weight.
constexpr int64_t kDotJob = 64;

// Activations as the dot products want them, rows `stride` floats apart: as they are, or prepared
// in `scratch`.
const float* prepare_few(const CpuKernels& kernels, RowForm form, const ConstTensorView& x,
                         Scratch& scratch, int64_t& stride) {
  const int64_t n = x.shape[0], in_dim = x.shape[1];
  stride = form == RowForm::bf16_pairs ? divide_up(in_dim, 2) : in_dim;
  if (form == RowForm::plain) return x.as<float>();
  float* rows = scratch.floats(static_cast<size_t>(n * stride));
  for (int64_t r = 0; r < n; ++r) {
    const float* from = x.as<float>() + r * in_dim;
    if (form == RowForm::bf16_pairs) {
      pack_pairs(from, static_cast<int>(in_dim), rows + r * stride);
    } else {
      std::memcpy(rows + r * stride, from, static_cast<size_t>(in_dim) * sizeof(float));
      kernels.round_bf16(rows + r * stride, in_dim);
    }
  }
  return rows;
}

// out[r][i] for the weight rows i of one job; `sums` of dots are [rows][kDotWeights]. Rows beyond
// those of one call find the weights in the cache.
void dot_rows(const CpuKernels& kernels, const CpuKernels::Dots* dots, const Projection& projection,
              const float* x, int64_t stride, int64_t n, int64_t begin) {
  const ConstTensorView& weight = projection.weight;
  const int64_t out_dim = weight.shape[0], in_dim = weight.shape[1];
  const int64_t row_bytes = in_dim * static_cast<int64_t>(dtype_bytes(weight.dtype));
  const int64_t end = std::min(begin + kDotJob, out_dim);
  for (int64_t first = begin; first < end; first += kDotWeights) {
    const int64_t count = std::min<int64_t>(kDotWeights, end - first);
    const std::byte* rows[kDotWeights];
    for (int64_t w = 0; w < kDotWeights; ++w) {
      rows[w] = weight.data + (first + std::min(w, count - 1)) * row_bytes;
    }
    float bias[kDotWeights] = {};
    if (const auto& given = projection.bias) {
      const int64_t offset = first * static_cast<int64_t>(dtype_bytes(given->dtype));
      kernels.to_float[given->dtype](given->data + offset, count, bias);
    }
    for (int64_t done = 0; done < n; done += kMaxDotRows) {
      const int64_t now = std::min<int64_t>(kMaxDotRows, n - done);
      float sums[kMaxDotRows * kDotWeights];
      dots[now - 1](rows, x + done * stride, stride, in_dim, sums);
      for (int64_t r = 0; r < now; ++r) {
        float* to = projection.out.as<float>() + (done + r) * out_dim + first;
        for (int64_t w = 0; w < count; ++w) {
          const float value = sums[r * kDotWeights + w] + bias[w];
          to[w] = projection.accumulate ? to[w] + value : value;
        }
      }
    }
  }
}

void multiply_few(const CpuKernels& kernels, RowForm form, ThreadPool& pool, LinearScratch& scratch,
                  const ConstTensorView& x, std::span<const Projection* const> projections) {
  const int64_t n = x.shape[0];
  int64_t stride = 0;
  const float* rows = prepare_few(kernels, form, x, scratch.rows, stride);
  std::vector<std::pair<const Projection*, int64_t>> jobs;
  for (const Projection* each : projections) {
    for (int64_t at = 0; at < each->weight.shape[0]; at += kDotJob) jobs.emplace_back(each, at);
  }
  pool.run(static_cast<int64_t>(jobs.size()), [&](int64_t job, int /*thread*/) {
    const auto& [projection, begin] = jobs[job];
    const CpuKernels::Dots* dots =
        form == RowForm::bf16_pairs ? kernels.pair_dots : kernels.dots[projection->weight.dtype];
    dot_rows(kernels, dots, *projection, rows, stride, n, begin);
  });
}

bool takes_dots(const CpuKernels& kernels, int64_t rows, int64_t computed_as) {
  if (kernels.dots.f32 == nullptr) return false;
  return computed_as > 0 ? computed_as <= kMostNamedDotRows : rows <= kMostDotRows;
}

}  // namespace

void cpu_linear(const CpuKernels& kernels, ThreadPool& pool, LinearScratch& scratch,
                const ConstTensorView& x, std::span<const Projection> projections,
                int64_t computed_as) {
  if (x.shape[0] == 0) return;
  scratch.threads.resize(static_cast<size_t>(pool.threads()));
  for (const RowForm form : {RowForm::plain, RowForm::rounded_to_bf16, RowForm::bf16_pairs}) {
    std::vector<const Projection*> chosen;
    for (const Projection& each : projections) {
      if (row_form(kernels, each.weight.dtype) == form) chosen.push_back(&each);
    }
    if (chosen.empty()) continue;
    const auto way = takes_dots(kernels, x.shape[0], computed_as) ? multiply_few : multiply;
    way(kernels, form, pool, scratch, x, chosen);
  }
}

}  // namespace fp8kv
