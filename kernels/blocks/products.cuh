// Shared by the kernels behind `linear`: several products of one x, laid side by side.
#pragma once

#include "kernels/blocks/elements.cuh"
#include "kernels/launch_products.h"

namespace fp8kv::FP8KV_GPU {

// The number of tiles of `width` columns over all products; no tile spans two products.
inline int64_t column_tiles(const Products& products, int64_t width) {
  int64_t tiles = 0;
  for (int i = 0; i < products.count; ++i) {
    tiles += (products.each[i].out_dim + width - 1) / width;
  }
  return tiles;
}

struct ColumnTile {
  Product product;
  int64_t first;  // column within the product
  int index;      // which product
};

__device__ inline ColumnTile column_tile(const Products& products, int64_t tile, int width) {
  for (int i = 0;; ++i) {
    const int64_t tiles = (products.each[i].out_dim + width - 1) / width;
    if (tile < tiles || i == products.count - 1) return {products.each[i], tile * width, i};
    tile -= tiles;
  }
}

template <typename T>
__device__ inline float with_bias(const Product& product, int64_t col, float sum) {
  if (product.bias == nullptr) return sum;
  return sum + static_cast<const T*>(product.bias)[col].value();
}

// Stores one element of the result to its place.
template <typename T>
__device__ inline void store_result(const Product& product, int64_t row, int64_t col, float sum) {
  const int64_t at = row * product.out_dim + col;
  sum = with_bias<T>(product, col, sum);
  if (product.out_f32) {
    float* out = static_cast<float*>(product.out) + at;
    *out = product.accumulate ? *out + sum : sum;
  } else {
    T* out = static_cast<T*>(product.out) + at;
    *out = T::of(product.accumulate ? out->value() + sum : sum);
  }
}

// Up to this many rows, the time is that of reading the weights, and a row of threads per output
// reads them best.
// Source: published measurements, where cuBLAS overtakes hand-written kernels of this kind between
// 2 and 4 rows.
inline constexpr int64_t kFewRows = 4;

inline bool is_few(const Products& products, int64_t computed_as) {
  return products.n <= kFewRows && computed_as <= kFewRows;
}

// The kernels; linear.cu says when each is used.
template <typename T>
void linear_rows(Stream stream, const Products& products);
template <typename T>
void linear_tensor(Stream stream, const Products& products);
template <typename T>
void linear_any(Stream stream, const Products& products);

}  // namespace fp8kv::FP8KV_GPU
