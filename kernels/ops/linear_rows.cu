// Products with few rows: bound by reading the weights once.
#include "kernels/blocks/column_sums.cuh"
#include "kernels/blocks/products.cuh"
#include "kernels/blocks/reduce.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// One warp per column of the result, for all kRows rows. REQUIRES rows of 16-byte vectors.
template <typename T, int kRows>
__global__ void linear_rows_kernel(Products products) {
  const int64_t number = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  const ColumnTile tile = column_tile(products, number, 1);
  const bool present = tile.first < tile.product.out_dim;
  const T* weight = static_cast<const T*>(tile.product.weight) + tile.first * products.in_dim;
  // Prefetches a line for every lane while the previous kernel finishes.
  const int64_t line = int64_t{lane_index()} * 128 / static_cast<int>(sizeof(T));
  if (present && line < products.in_dim) prefetch(weight + line);
  after_previous();
  if (!present) return;
  float sums[1][kRows];
  column_sums<T, 4, 1, kRows>({weight}, static_cast<const T*>(products.x), products.in_dim, sums);
  for (int row = 0; row < kRows; ++row) {
    const float sum = warp_sum(sums[0][row]);
    if (lane_index() == 0) store_result<T>(tile.product, row, tile.first, sum);
  }
}

}  // namespace

template <typename T>
void linear_rows(Stream stream, const Products& products) {
  const int64_t columns = column_tiles(products, 1);
  const auto blocks = static_cast<unsigned>((columns + kWarps - 1) / kWarps);
  void (*const kernels[])(Products) = {linear_rows_kernel<T, 1>, linear_rows_kernel<T, 2>,
                                       linear_rows_kernel<T, 3>, linear_rows_kernel<T, 4>};
  launch("linear", kernels[products.n - 1], {blocks}, kThreads, 0, stream, products);
}

template void linear_rows<F32>(Stream, const Products&);
template void linear_rows<F16>(Stream, const Products&);
template void linear_rows<Bf16>(Stream, const Products&);

}  // namespace fp8kv::FP8KV_GPU
