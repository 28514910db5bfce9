// Products of any shape and type with plain multiply-adds, for f32 models and for rows that are not
// whole vectors.
#include "kernels/blocks/products.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;          // rows and columns of a block
constexpr int kDepth = 16;         // depth of a slice in shared memory
constexpr int kSide = 4;           // rows and columns of a thread
constexpr int kPitch = kTile + 4;  // off a multiple of the banks

// Loads from [rows, depth] into slice [kDepth][kPitch], transposed; zero outside.
template <typename T>
__device__ inline void load_slice(const T* from, int64_t first_row, int64_t rows, int64_t first,
                                  int64_t depth, float* slice) {
  for (int i = thread_index(); i < kTile * kDepth; i += kThreads) {
    const int64_t row = first_row + i / kDepth;
    const int64_t at = first + i % kDepth;
    slice[i % kDepth * kPitch + i / kDepth] =
        row < rows && at < depth ? from[row * depth + at].value() : 0.0f;
  }
}

// One block per kTile rows (x) and kTile columns (y).
template <typename T>
__global__ void linear_any_kernel(Products products) {
  after_previous();
  Shared shared;
  float* xs = shared.take<float>(kDepth * kPitch);
  float* weights = shared.take<float>(kDepth * kPitch);
  const ColumnTile tile = column_tile(products, block_index().y, kTile);
  const int64_t first_row = static_cast<int64_t>(block_index().x) * kTile;
  const int row = thread_index() / 16 * kSide, col = thread_index() % 16 * kSide;
  float sums[kSide][kSide] = {};
  for (int64_t first = 0; first < products.in_dim; first += kDepth) {
    load_slice(static_cast<const T*>(products.x), first_row, products.n, first, products.in_dim,
               xs);
    load_slice(static_cast<const T*>(tile.product.weight), tile.first, tile.product.out_dim, first,
               products.in_dim, weights);
    block_sync();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kSide; ++i) {
        for (int j = 0; j < kSide; ++j) {
          sums[i][j] = fused(xs[d * kPitch + row + i], weights[d * kPitch + col + j], sums[i][j]);
        }
      }
    }
    block_sync();
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      if (first_row + row + i < products.n && tile.first + col + j < tile.product.out_dim) {
        store_result<T>(tile.product, first_row + row + i, tile.first + col + j, sums[i][j]);
      }
    }
  }
}

}  // namespace

template <typename T>
void linear_any(Stream stream, const Products& products) {
  const Grid grid{static_cast<unsigned>((products.n + kTile - 1) / kTile),
                  static_cast<unsigned>(column_tiles(products, kTile))};
  launch("linear", linear_any_kernel<T>, grid, kThreads, 2 * kDepth * kPitch * sizeof(float),
         stream, products);
}

template void linear_any<F32>(Stream, const Products&);
template void linear_any<F16>(Stream, const Products&);
template void linear_any<Bf16>(Stream, const Products&);

}  // namespace fp8kv::FP8KV_GPU
