#include "backend/cpu/products/cpu_linear_heads.h"

#include <algorithm>
#include <array>
#include <span>

#include "backend/cpu/products/cpu_products.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Rows of one job in tiles: with heads of 512 elements they fill half of a 1 MiB L2 cache.
constexpr int64_t kJobRows = 256;
// Rows of a head's matrix in one job of dot products.
constexpr int64_t kDotJob = 64;

struct Op {
  const CpuKernels& kernels;
  RowForm form;
  const ConstHeadColumns& x;
  const ConstTensorView& weights;  // [n_heads, out_dim, in_dim]
  const HeadColumns& out;
  int64_t n = x.rows.shape[0];
  int64_t n_heads = weights.shape[0];
  int64_t out_dim = weights.shape[1];
  int64_t in_dim = weights.shape[2];

  const float* x_at(int64_t row, int64_t head) const {
    return x.rows.as<float>() + (row * n_heads + head) * x.rows.shape[2] + x.first;
  }
  float* out_at(int64_t row, int64_t head) const {
    return out.rows.as<float>() + (row * n_heads + head) * out.rows.shape[2] + out.first;
  }
  WeightRows weight_of(int64_t head) const {
    const size_t bytes = weights.bytes() / static_cast<size_t>(n_heads);
    return {{weights.data + static_cast<size_t>(head) * bytes, weights.dtype, {out_dim, in_dim}}};
  }
};

// Few rows: dot products along the rows of a head's matrix.
void multiply_by_dots(const Op& op, ThreadPool& pool, LinearScratch& scratch) {
  const int64_t stride = dot_stride(op.form, op.in_dim);
  float* rows = scratch.rows.floats(static_cast<size_t>(op.n_heads * op.n * stride));
  pool.run(op.n_heads, [&](int64_t head, int /*thread*/) {
    for (int64_t row = 0; row < op.n; ++row) {
      prepare_dot_row(op.kernels, op.form, op.x_at(row, head), op.in_dim,
                      rows + (head * op.n + row) * stride);
    }
  });
  const int64_t parts = divide_up(op.out_dim, kDotJob);
  pool.run(op.n_heads * parts, [&](int64_t job, int thread) {
    const int64_t head = job / parts, begin = job % parts * kDotJob;
    const DotRows head_rows{op.kernels, op.form, rows + head * op.n * stride, stride, op.n};
    multiply_dots(
        head_rows, op.weight_of(head), {begin, std::min(begin + kDotJob, op.out_dim)},
        scratch.codes[static_cast<size_t>(thread)],
        [&](int64_t row, int64_t column, float sum) { op.out_at(row, head)[column] = sum; });
  });
}

// Rows [first, end) of one head, strip by strip.
void multiply_job(const Op& op, int64_t head, int64_t first, int64_t end, Scratch& memory,
                  CodeScratch& codes) {
  const int64_t width = strip_width(op.kernels, op.form), count = end - first;
  PackedRows packed{nullptr, count, op.in_dim, op.form};
  const auto packed_size = static_cast<int64_t>(packed.floats());
  const int64_t panel_size = panel_floats(op.kernels, op.form, count, 1);
  packed.data = memory.floats(static_cast<size_t>(packed_size + panel_size));
  float* panel = packed.data + packed_size;
  for (int64_t begin = 0; begin < count; begin += kPackRows) {
    std::array<const float*, kPackRows> from{};
    const int64_t n = std::min(kPackRows, count - begin);
    for (int64_t i = 0; i < n; ++i) from[static_cast<size_t>(i)] = op.x_at(first + begin + i, head);
    pack_rows(op.kernels, std::span(from).first(static_cast<size_t>(n)), packed, begin);
  }
  const TileRows rows{op.kernels, packed, 0, count};
  const WeightRows weight = op.weight_of(head);
  const int64_t stride = op.n_heads * op.out.rows.shape[2];
  for (int64_t strip = 0; strip < divide_up(op.out_dim, width); ++strip) {
    const int64_t columns = std::min(width, op.out_dim - strip * width);
    multiply_strips(rows, weight, {strip, 1},
                    {op.out_at(first, head) + strip * width, stride, columns}, {panel, codes});
  }
}

}  // namespace

void cpu_linear_heads(const CpuContext& cpu, LinearScratch& scratch, const ConstHeadColumns& x,
                      const ConstTensorView& weights, const HeadColumns& out) {
  const ProductMethod method =
      product_method(cpu.kernels, {weights.dtype, false, x.rows.shape[0], cpu.computed_as.rows});
  const Op op{cpu.kernels, method.form, x, weights, out};
  FP8KV_ASSERT(x.rows.dtype == DType::f32 && out.rows.dtype == DType::f32);
  FP8KV_ASSERT(x.first + op.in_dim <= x.rows.shape[2]);
  FP8KV_ASSERT(out.first + op.out_dim <= out.rows.shape[2]);
  if (op.n == 0) return;
  scratch.threads.resize(static_cast<size_t>(cpu.pool.threads()));
  scratch.codes.resize(static_cast<size_t>(cpu.pool.threads()));
  if (method.dots) return multiply_by_dots(op, cpu.pool, scratch);
  const int64_t parts = divide_up(op.n, kJobRows);
  cpu.pool.run(op.n_heads * parts, [&](int64_t job, int thread) {
    const int64_t head = job / parts, part = job % parts;
    multiply_job(op, head, part_begin(op.n, parts, part), part_begin(op.n, parts, part + 1),
                 scratch.threads[static_cast<size_t>(thread)],
                 scratch.codes[static_cast<size_t>(thread)]);
  });
}

}  // namespace fp8kv
