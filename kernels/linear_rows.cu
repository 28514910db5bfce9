// Products with few rows: bound by reading the weights once.
#include "kernels/products.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vec.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// One warp per column of the result, for all kRows rows. REQUIRES rows of 16-byte vectors.
template <typename T, int kRows>
__global__ void linear_rows_kernel(Products products) {
  constexpr int kCount = kVector<T>;
  const int64_t number = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  const ColumnTile tile = column_tile(products, number, 1);
  if (tile.first >= tile.product.out_dim) return;
  const int64_t in_dim = products.in_dim;
  const T* weight = static_cast<const T*>(tile.product.weight) + tile.first * in_dim;
  const T* x = static_cast<const T*>(products.x);
  float sums[kRows] = {};
#pragma unroll 4
  for (int64_t i = kCount * lane_index(); i < in_dim; i += kCount * kWarp) {
    const auto weights = load_vec<kCount>(weight + i);
    for (int row = 0; row < kRows; ++row) {
      const auto part = load_vec<kCount>(x + row * in_dim + i);
      for (int j = 0; j < kCount; ++j) {
        sums[row] = fused(part.x[j].value(), weights.x[j].value(), sums[row]);
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    const float sum = warp_sum(sums[row]);
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
