// Quantised weights as numbers.
#include "kernels/blocks/elements.cuh"
#include "kernels/launch_products.h"
#include "kernels/launch_rows.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
// With more elements, threads step on by the whole grid.
constexpr int64_t kMostBlocks = 65536;

// One element per thread and turn: neighbours read neighbouring codes, or the same word.
template <typename T>
__global__ void decode_weights_kernel(QuantisedMatrix matrix, T* to) {
  after_previous();
  const int64_t count = matrix.rows * matrix.columns;
  const int64_t all = int64_t{grid_size().x} * kThreads;
  int64_t at = int64_t{block_index().x} * kThreads + thread_index();
  for (; at < count; at += all) {
    to[at] = T::of(weight_value(matrix, at / matrix.columns, at % matrix.columns));
  }
}

__global__ void decode_scales_kernel(QuantisedMatrix matrix, int64_t count, float* to) {
  after_previous();
  const int64_t all = int64_t{grid_size().x} * kThreads;
  int64_t at = int64_t{block_index().x} * kThreads + thread_index();
  for (; at < count; at += all) {
    to[at] = scale_value(matrix, at / matrix.n_groups * matrix.block_rows, at % matrix.n_groups);
  }
}

}  // namespace

void decode_scales(Stream stream, const QuantisedMatrix& matrix, float* to) {
  const int64_t count = (matrix.rows + matrix.block_rows - 1) / matrix.block_rows * matrix.n_groups;
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  launch("decode_scales", decode_scales_kernel,
         {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)}, kThreads, 0, stream,
         matrix, count, to);
}

void decode_weights(Stream stream, const QuantisedMatrix& matrix, DType dtype, void* to) {
  const int64_t blocks = (matrix.rows * matrix.columns + kThreads - 1) / kThreads;
  with_compute_type(dtype, [&]<typename T>(T) {
    launch("decode_weights", decode_weights_kernel<T>,
           {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)}, kThreads, 0,
           stream, matrix, static_cast<T*>(to));
  });
}

}  // namespace fp8kv::FP8KV_GPU
