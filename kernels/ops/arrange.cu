// Weights in another order than their file has them.
#include "kernels/launch_rows.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
// With more elements, threads step on by the whole grid.
constexpr int64_t kMostBlocks = 65536;

// One element per thread and turn, in the order of `to`.
template <typename T>
__global__ void arrange_kernel(const T* from, int64_t row_step, int64_t column_step, T* to,
                               int64_t columns, int64_t count) {
  after_previous();
  const int64_t all = int64_t{grid_size().x} * kThreads;
  int64_t at = int64_t{block_index().x} * kThreads + thread_index();
  for (; at < count; at += all) {
    to[at] = from[at / columns * row_step + at % columns * column_step];
  }
}

template <typename T>
void run(Stream stream, const void* from, int64_t row_step, int64_t column_step, const Matrix& to) {
  const int64_t count = to.rows * to.cols, blocks = (count + kThreads - 1) / kThreads;
  launch("arrange", arrange_kernel<T>,
         {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)}, kThreads, 0, stream,
         static_cast<const T*>(from), row_step, column_step, static_cast<T*>(to.data), to.cols,
         count);
}

}  // namespace

void arrange(Stream stream, const void* from, int64_t row_step, int64_t column_step,
             const Matrix& to) {
  to.dtype == DType::f32 ? run<uint32_t>(stream, from, row_step, column_step, to)
                         : run<uint16_t>(stream, from, row_step, column_step, to);
}

}  // namespace fp8kv::FP8KV_GPU
