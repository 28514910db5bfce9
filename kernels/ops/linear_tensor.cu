// Products on tensor cores, with weights that are numbers.
#include "kernels/blocks/tensor_tiles.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

// One block per tile of the result. REQUIRES rows of 16-byte vectors.
template <typename T, typename Tile>
__global__ void __launch_bounds__(kTensorThreads)
    linear_tensor_kernel(Products products, int64_t row_tiles, int64_t col_tiles) {
  after_previous();
  tensor_tile<T, Tile, NumberPieces>(products, row_tiles, col_tiles);
}

template <typename T, typename Tile>
void run(Stream stream, const Products& products) {
  const int64_t row_tiles = (products.n + Tile::kRows - 1) / Tile::kRows;
  const int64_t col_tiles = column_tiles(products, Tile::kCols);
  launch("linear", linear_tensor_kernel<T, Tile>, {static_cast<unsigned>(row_tiles * col_tiles)},
         kTensorThreads, Tile::template kSharedBytes<2>, stream, products, row_tiles, col_tiles);
}

}  // namespace

template <typename T>
void linear_tensor(Stream stream, const Products& products) {
  products.n <= Small::kRows ? run<T, Small>(stream, products) : run<T, Large>(stream, products);
}

template void linear_tensor<F16>(Stream, const Products&);
template void linear_tensor<Bf16>(Stream, const Products&);

}  // namespace fp8kv::FP8KV_GPU
