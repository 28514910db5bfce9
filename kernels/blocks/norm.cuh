// Norms, by blocks of kNormThreads threads. All kernels that normalise share this, so that a row
// has the same bits from each.
#pragma once

#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {

inline constexpr int kNormThreads = 256;
inline constexpr int kNormWarps = kNormThreads / kWarp;

// Shared memory of norm_factors for `rows` rows.
constexpr size_t norm_shared_bytes(int64_t rows) {
  return (static_cast<size_t>(rows) * kNormWarps * sizeof(float) + 15) / 16 * 16;
}

// 1 / rms of a row; `squares` is the sum of its squares.
__device__ inline float rms_factor(float squares, int64_t dim, float eps) {
  return rsqrt_exact(squares / static_cast<float>(dim) + eps);
}

// factors[row] = 1 / rms of each row of x [kRows, dim], in every thread.
// REQUIRES rows of whole vectors of kCount elements.
template <int kCount, typename T, int kRows>
__device__ inline void norm_factors(const T* x, int64_t dim, float eps, Shared& shared,
                                    float (&factors)[kRows]) {
  float squares[kRows] = {};
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kNormThreads) {
    for (int row = 0; row < kRows; ++row) {
      const auto part = load_vec<kCount>(x + row * dim + i);
      for (int j = 0; j < kCount; ++j) {
        squares[row] = fused(part.x[j].value(), part.x[j].value(), squares[row]);
      }
    }
  }
  block_sums<kNormWarps>(squares, shared.take<float>(kRows * kNormWarps));
  for (int row = 0; row < kRows; ++row) {
    factors[row] = rms_factor(squares[row], dim, eps);
  }
}

template <typename T, int kCount>
__device__ inline Vec<T, kCount> normalised(Vec<T, kCount> x, const Vec<T, kCount>& weight,
                                            float offset, float factor) {
  for (int j = 0; j < kCount; ++j) {
    x.x[j] = T::of(x.x[j].value() * factor * (weight.x[j].value() + offset));
  }
  return x;
}

}  // namespace fp8kv::FP8KV_GPU
