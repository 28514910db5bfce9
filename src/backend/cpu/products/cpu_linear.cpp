#include "backend/cpu/products/cpu_linear.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cpu/products/cpu_products.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Rows at a time: with kTileStride steps each they fill half of a 1 MiB L2 cache.
constexpr int64_t kBlockRows = 512;
// Strips whose sums are kept at once; the packed rows are read once for all of them. A matrix unit
// reads the rows so fast that it wants more strips.
constexpr int64_t kStrips = 4, kMaxStrips = 8;
// A job is one of this many for each thread in what is left, so that a slow thread does not hold up
// the rest.
constexpr int64_t kJobsPerThread = 2;

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

// Shared by all jobs of a block of rows.
struct Block {
  const CpuKernels& kernels;
  PackedRows rows;
  int64_t first_row;  // where the block begins in x and out

  int64_t strip_width() const { return fp8kv::strip_width(kernels, rows.form); }
};

WeightRows weight_rows(const Projection& projection) {
  return {projection.weight, projection.codes ? &*projection.codes : nullptr};
}

void compute(const Block& block, const Piece& piece, Scratch& scratch, CodeScratch& codes) {
  const int64_t width = block.strip_width(), first = piece.first_strip * width;
  const int64_t out_dim = piece.projection->weight.shape[0];
  const int64_t columns = std::min(piece.n_strips() * width, out_dim - first);
  std::array<float, kMaxStrips * kMaxStrip> bias{};
  if (const auto& given = piece.projection->bias) {
    const int64_t offset = first * static_cast<int64_t>(dtype_bytes(given->dtype));
    block.kernels.to_float[given->dtype](given->data + offset, columns, bias.data());
  }
  float* out =
      piece.projection->out.as<float>() + (block.first_row + piece.first_row) * out_dim + first;
  float* panel = scratch.floats(
      panel_floats(block.kernels, block.rows.form, piece.n_rows(), piece.n_strips()));
  const TileRows rows{block.kernels, block.rows, piece.first_row, piece.n_rows()};
  multiply_strips(rows, weight_rows(*piece.projection), {piece.first_strip, piece.n_strips()},
                  {out, out_dim, columns, bias.data(), piece.projection->accumulate},
                  {panel, codes});
}

// Cuts all projections of a block into jobs, smaller ones towards the end, so that all threads end
// together. The cut affects speed alone: no result depends on it.
std::vector<Piece> make_pieces(const Block& block, int64_t threads, int64_t n_rows,
                               std::span<const Projection* const> projections) {
  const int64_t width = block.strip_width();
  const auto strips_of = [&](const Projection* each) {
    return divide_up(each->weight.shape[0], width);
  };
  int64_t left = 0;
  for (const Projection* each : projections) left += strips_of(each);
  const int64_t wanted = threads == 1 ? 1 : threads * kJobsPerThread;
  const int64_t most = is_for_unit(block.rows.form) ? kMaxStrips : kStrips;
  // Cuts rows only if there are too few strips for all threads, and then not below a few tiles.
  const int64_t row_parts =
      std::clamp<int64_t>(wanted / std::max<int64_t>(left, 1), 1,
                          std::max<int64_t>(1, n_rows / (4 * block.kernels.tile_rows)));
  std::vector<Piece> pieces;
  for (const Projection* each : projections) {
    const int64_t n_strips = strips_of(each);
    for (int64_t strip = 0; strip < n_strips;) {
      const int64_t share = threads == 1 ? most : std::clamp<int64_t>(left / wanted, 1, most);
      const int64_t end = std::min(strip + share, n_strips);
      for (int64_t part = 0; part < row_parts; ++part) {
        pieces.push_back({each, strip, end, part_begin(n_rows, row_parts, part),
                          part_begin(n_rows, row_parts, part + 1)});
      }
      left -= end - strip;
      strip = end;
    }
  }
  return pieces;
}

void multiply_by_tiles(const CpuContext& cpu, RowForm form, LinearScratch& scratch,
                       const ConstTensorView& x, std::span<const Projection* const> projections) {
  const int64_t n = x.shape[0];
  const int64_t in_dim = x.shape[1];
  const int64_t row_blocks = divide_up(n, kBlockRows);
  for (int64_t part = 0; part < row_blocks; ++part) {
    const int64_t first = part_begin(n, row_blocks, part);
    const int64_t rows = part_begin(n, row_blocks, part + 1) - first;
    PackedRows packed{nullptr, rows, in_dim, form};
    packed.data = scratch.rows.floats(packed.floats());
    cpu.pool.run(divide_up(rows, kPackRows), [&](int64_t job, int /*thread*/) {
      const int64_t begin = job * kPackRows, count = std::min(kPackRows, rows - begin);
      std::array<const float*, kPackRows> from{};
      for (int64_t i = 0; i < count; ++i) {
        from[static_cast<size_t>(i)] = x.as<float>() + (first + begin + i) * in_dim;
      }
      pack_rows(cpu.kernels, std::span(from).first(static_cast<size_t>(count)), packed, begin);
    });
    const Block block{cpu.kernels, packed, first};
    const std::vector<Piece> pieces = make_pieces(block, cpu.pool.threads(), rows, projections);
    cpu.pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t job, int thread) {
      compute(block, pieces[job], scratch.threads[thread], scratch.codes[thread]);
    });
  }
}

// Rows of a weight in one job of dot products: half a megabyte of a 4096-wide bf16 weight.
constexpr int64_t kDotJob = 64;

// Activations for the dot products: in place, or prepared in `scratch`.
DotRows prepare_dot_rows(const CpuKernels& kernels, RowForm form, const ConstTensorView& x,
                         Scratch& scratch) {
  const int64_t n = x.shape[0], in_dim = x.shape[1], stride = dot_stride(form, in_dim);
  if (form == RowForm::plain) return {kernels, form, x.as<float>(), stride, n};
  float* rows = scratch.floats(static_cast<size_t>(n * stride));
  for (int64_t r = 0; r < n; ++r) {
    prepare_dot_row(kernels, form, x.as<float>() + r * in_dim, in_dim, rows + r * stride);
  }
  return {kernels, form, rows, stride, n};
}

// Computes out[r][i] for the weight rows i of one job.
void dot_rows(const DotRows& rows, const Projection& projection, int64_t begin,
              CodeScratch& codes) {
  const int64_t out_dim = projection.weight.shape[0];
  const int64_t end = std::min(begin + kDotJob, out_dim);
  float bias[kDotJob] = {};
  if (const auto& given = projection.bias) {
    const int64_t offset = begin * static_cast<int64_t>(dtype_bytes(given->dtype));
    rows.kernels.to_float[given->dtype](given->data + offset, end - begin, bias);
  }
  float* out = projection.out.as<float>();
  multiply_dots(rows, weight_rows(projection), {begin, end}, codes,
                [&](int64_t row, int64_t column, float sum) {
                  float& to = out[row * out_dim + column];
                  const float value = sum + bias[column - begin];
                  to = projection.accumulate ? to + value : value;
                });
}

void multiply_by_dots(const CpuContext& cpu, RowForm form, LinearScratch& scratch,
                      const ConstTensorView& x, std::span<const Projection* const> projections) {
  const DotRows rows = prepare_dot_rows(cpu.kernels, form, x, scratch.rows);
  std::vector<std::pair<const Projection*, int64_t>> jobs;
  for (const Projection* each : projections) {
    for (int64_t at = 0; at < each->weight.shape[0]; at += kDotJob) jobs.emplace_back(each, at);
  }
  cpu.pool.run(static_cast<int64_t>(jobs.size()), [&](int64_t job, int thread) {
    const auto& [projection, begin] = jobs[job];
    dot_rows(rows, *projection, begin, scratch.codes[thread]);
  });
}

}  // namespace

void cpu_linear(const CpuContext& cpu, LinearScratch& scratch, const ConstTensorView& x,
                std::span<const Projection> projections) {
  if (x.shape[0] == 0) return;
  scratch.threads.resize(static_cast<size_t>(cpu.pool.threads()));
  scratch.codes.resize(static_cast<size_t>(cpu.pool.threads()));
  std::vector<const Projection*> left;
  for (const Projection& each : projections) {
    FP8KV_ASSERT(each.weight.shape[1] == x.shape[1]);
    left.push_back(&each);
  }
  while (!left.empty()) {
    const auto method_of = [&](const Projection* each) {
      return product_method(cpu.kernels, {each->weight.dtype, each->codes.has_value(), x.shape[0],
                                          cpu.computed_as.rows});
    };
    const ProductMethod method = method_of(left.front());
    const auto others =
        std::stable_partition(left.begin(), left.end(),
                              [&](const Projection* each) { return method_of(each) == method; });
    const std::span alike(left.begin(), others);
    (method.dots ? multiply_by_dots : multiply_by_tiles)(cpu, method.form, scratch, x, alike);
    left.erase(left.begin(), others);
  }
}

}  // namespace fp8kv
