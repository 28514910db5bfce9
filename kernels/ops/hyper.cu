// Hyper-connections: shares by which rows read, write and mix their residual streams.
#include "core/model/streams.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_rows.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostCells = static_cast<int>(kMostStreams * kMostStreams);
static_assert(kMostCells <= kThreads);

// The sums of squares, then the cells of a matrix of shares.
constexpr size_t kSharedBytes =
    (kWarps * sizeof(float) + 15) / 16 * 16 + kMostCells * sizeof(float);

// The sum of `count` cells, `step` apart.
__device__ inline float sum_along(const float* cells, int step, int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) sum += cells[i * step];
  return sum;
}

// Every thread with a cell puts it into memory that all read, before and after.
__device__ inline void put(float* cells, bool has_cell, int at, float cell) {
  block_sync();
  if (has_cell) cells[at] = cell;
  block_sync();
}

// One block per row; a thread for each share.
template <typename T>
__global__ void hyper_shares_kernel(HyperArguments args) {
  after_previous();
  Shared shared;
  const int64_t row = block_index().x;
  const int count = args.count, all = count * count, thread = thread_index();
  const int64_t width = args.count * args.dim;
  const T* x = static_cast<const T*>(args.x) + row * width;
  float squares[1] = {};
  for (int64_t i = thread; i < width; i += kThreads) {
    const float value = x[i].value();
    squares[0] = fused(value, value, squares[0]);
  }
  block_sums<kWarps>(squares, shared.take<float>(kWarps));
  const float factor = rsqrt_exact(squares[0] / static_cast<float>(width) + args.norm_eps);
  const int of_row = args.mix != nullptr     ? (2 + count) * count
                     : args.write != nullptr ? 2 * count
                                             : count;
  const float* products = args.products + row * of_row;
  const auto term = [&](int i, int kind) {
    return products[i] * factor * number_at(args.scale, args.scale_dtype, kind) +
           number_at(args.base, args.base_dtype, i);
  };
  if (thread < count) {
    args.read[row * count + thread] = activated<Activation::sigmoid>(term(thread, 0)) + args.eps;
    if (args.write != nullptr) {
      args.write[row * count + thread] =
          args.most_written * activated<Activation::sigmoid>(term(count + thread, 1)) +
          args.write_eps;
    }
  }
  if (args.mix == nullptr) return;
  float* cells = shared.take<float>(kMostCells);
  const bool has_cell = thread < all;
  const int i = has_cell ? thread / count : 0, j = has_cell ? thread % count : 0;
  float cell = has_cell ? term(2 * count + thread, 2) : 0.0f;
  put(cells, has_cell, thread, cell);
  float most = cells[i * count];
  for (int k = 1; k < count; ++k) most = fmaxf(most, cells[i * count + k]);
  cell = exp_exact(cell - most);
  put(cells, has_cell, thread, cell);
  cell = cell / sum_along(cells + i * count, 1, count) + args.eps;
  // Columns, then rows and columns by turns.
  for (int pass = 0; pass < 2 * args.rounds - 1; ++pass) {
    put(cells, has_cell, thread, cell);
    const float sum =
        pass % 2 == 0 ? sum_along(cells + j, count, count) : sum_along(cells + i * count, 1, count);
    cell = cell / (args.eps + sum);
  }
  if (has_cell) args.mix[row * all + j * count + i] = cell;
}

}  // namespace

void hyper_shares(Stream stream, DType dtype, int64_t n, const HyperArguments& arguments) {
  with_compute_type(dtype, [&]<typename T>(T) {
    launch("hyper_shares", hyper_shares_kernel<T>, {static_cast<unsigned>(n)}, kThreads,
           kSharedBytes, stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
