// Readers of a cache's rows, one for each element type and one for every other format.
#pragma once

#include "core/cache/kv_rows.h"
#include "core/cache/paged.h"
#include "core/numbers/hadamard.h"
#include "kernels/blocks/elements.cuh"

namespace fp8kv::FP8KV_GPU {

template <typename Cache>
inline constexpr bool kIsAny = std::is_same_v<Cache, AnyRow>;

// K of one row.
template <typename Cache>
struct KeyRow {
  const Cache* x;
  __device__ KeyRow(const PagedKv& kv, int64_t row)
      : x(static_cast<const Cache*>(kv.k) + row * kv.head_dim) {}
  __device__ float value(int d) const { return x[d].value(); }
};

// V of one row. `step`: elements from one row to the next, if rows are elements.
template <typename Cache>
struct ValueRow {
  const Cache* x;
  __device__ ValueRow(const PagedKv& kv, int64_t row, int step)
      : x(static_cast<const Cache*>(kv.v) + row * step) {}
  __device__ float value(int d) const { return x[d].value(); }
};

template <>
struct KeyRow<AnyRow> {
  KvRow row;
  const uint8_t* x;
  __device__ KeyRow(const PagedKv& kv, int64_t number)
      : row(kv.k_row()), x(static_cast<const uint8_t*>(kv.k) + number * row.bytes()) {}
  __device__ float value(int d) const { return row_value(row, x, d); }
};

template <>
struct ValueRow<AnyRow> {
  KvRow row;
  const uint8_t* x;
  int first;  // first element in the row; V of a latent is the end of K
  __device__ ValueRow(const PagedKv& kv, int64_t number, int /*step*/)
      : row(kv.v_row()),
        x(static_cast<const uint8_t*>(kv.v) + number * row.bytes()),
        first(kv.v_in_k > 0 ? kv.head_dim - kv.v_in_k : 0) {}
  __device__ float value(int d) const { return row_value(row, x, first + d); }
};

// A head's scale from the model; 1 in formats without a stored scale.
template <typename Cache>
__device__ inline float stored_scale(const float* scales, int kv_head) {
  if constexpr (kIsAny<Cache>) return scales != nullptr ? scales[kv_head] : 1.0f;
  return kIsFp8<Cache> ? scales[kv_head] : 1.0f;
}

// core/numbers/hadamard.h by one warp, in shared memory: the same sums in the same order. All lanes
// of the warp take part and synchronise on x before and after.
__device__ inline void hadamard_by_warp(float* x, int dim, bool inverse) {
  const int block = hadamard_block(dim);
  const auto signs = [&] {
    for (int i = lane_index(); i < dim; i += kWarp) x[i] *= hadamard_sign(i % block);
    warp_sync();
  };
  if (!inverse) signs();
  for (int step = 1; step < block; step *= 2) {
    for (int pair = lane_index(); pair < dim / 2; pair += kWarp) {
      const int first = hadamard_first(pair, step);
      const float a = x[first], b = x[first + step];
      x[first] = a + b;
      x[first + step] = a - b;
    }
    warp_sync();
  }
  if (inverse) signs();
}

// Rotates a query in shared memory like K of a rotated cache, and rounds it to T. Its factor is a
// power of two.
template <typename T>
__device__ inline void rotate_query(float* query, int dim) {
  hadamard_by_warp(query, dim, false);
  const float factor = 1.0f / static_cast<float>(hadamard_block(dim));
  for (int d = lane_index(); d < dim; d += kWarp) query[d] = T::of(query[d]).value() * factor;
  warp_sync();
}

// Rotates sums of rotated V back: out [dim] gets sums of V. `acc` has the lane's dimensions. `x` is
// shared memory of the warp for `dim` floats.
template <typename T, int kDimsPerLane>
__device__ inline void rotate_back_to(const float (&acc)[kDimsPerLane], int dim, float factor,
                                      float* x, T* out) {
  for (int j = 0; j < kDimsPerLane; ++j) {
    const int d = lane_index() + j * kWarp;
    if (d < dim) x[d] = acc[j] * factor;
  }
  warp_sync();
  hadamard_by_warp(x, dim, true);
  const auto block = static_cast<float>(hadamard_block(dim));
  for (int d = lane_index(); d < dim; d += kWarp) out[d] = T::of(x[d] / block);
}

}  // namespace fp8kv::FP8KV_GPU
