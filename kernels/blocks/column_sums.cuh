// Products of few rows: a warp computes a column. All kernels for few rows share this, so that a
// column has the same bits from each.
#pragma once

#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {

// Computes a lane's part of the products of x [kRows, in_dim] with kColumns columns of weights;
// warp_sum adds the parts of all lanes. Loads kAhead vectors of each column at a time. REQUIRES
// rows of 16-byte vectors.
template <typename T, int kAhead, int kColumns, int kRows>
__device__ inline void column_sums(const T* const (&weights)[kColumns], const T* x, int64_t in_dim,
                                   float (&sums)[kColumns][kRows]) {
  constexpr int kCount = kVector<T>;
  for (int column = 0; column < kColumns; ++column) {
    for (int row = 0; row < kRows; ++row) sums[column][row] = 0.0f;
  }
#pragma unroll kAhead
  for (int64_t i = kCount * lane_index(); i < in_dim; i += kCount * kWarp) {
    Vec<T, kCount> parts[kColumns];
    for (int column = 0; column < kColumns; ++column) {
      parts[column] = load_vec<kCount>(weights[column] + i);
    }
    for (int row = 0; row < kRows; ++row) {
      const auto part = load_vec<kCount>(x + row * in_dim + i);
      for (int column = 0; column < kColumns; ++column) {
        for (int j = 0; j < kCount; ++j) {
          sums[column][row] =
              fused(part.x[j].value(), parts[column].x[j].value(), sums[column][row]);
        }
      }
    }
  }
}

}  // namespace fp8kv::FP8KV_GPU
