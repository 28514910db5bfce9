// Rotation and the way into the cache, a pair (i, i + head_dim / 2) at a time: what the kernels
// that append share, so that they store the same bits.
#pragma once

#include "kernels/launch.h"
#include "kernels/vec.cuh"

namespace fp8kv::FP8KV_GPU {

enum HeadTensor { kQ, kK, kV };

// Heads are numbered Q's, then K's, then V's.
struct Head {
  int tensor;
  int index;    // within the tensor
  int n_heads;  // of the tensor
  int kv_head;
};

__device__ inline Head head_of(int number, const RopeArguments& arguments) {
  const int n_heads = arguments.n_heads;
  const int n_kv_heads = arguments.kv.n_kv_heads;
  if (number < n_heads) return {kQ, number, n_heads, number / (n_heads / n_kv_heads)};
  number -= n_heads;
  if (number < n_kv_heads) return {kK, number, n_kv_heads, number};
  return {kV, number - n_kv_heads, n_kv_heads, number - n_kv_heads};
}

// The head's elements in a row of Q, K or V.
template <typename T>
__device__ inline T* row_of(const RopeArguments& arguments, const Head& head, int row) {
  void* tensor = head.tensor == kQ ? arguments.q : head.tensor == kK ? arguments.k : arguments.v;
  return static_cast<T*>(tensor) +
         (static_cast<int64_t>(row) * head.n_heads + head.index) * arguments.kv.head_dim;
}

struct Pair {
  float first;
  float second;
};

__device__ inline Pair rotated(Pair x, float cosine, float sine) {
  return {x.first * cosine - x.second * sine, x.second * cosine + x.first * sine};
}

__device__ inline float rounded(float x, DType dtype) {
  if (dtype == DType::f16) return f16_value(f16_code(x));
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(x));
  return x;
}

// Stores kCount pairs of a head of K or V to the cache, from `pair` on.
template <typename Cache, int kCount>
__device__ inline void append(const RopeArguments& arguments, const Head& head, int slot, int pair,
                              const float* first, const float* second) {
  const PagedKv& kv = arguments.kv;
  const int64_t at = kv.offset(slot / kv.page_size, head.kv_head, slot % kv.page_size) + pair;
  auto* cache = static_cast<Cache*>(head.tensor == kK ? kv.k : kv.v) + at;
  float scale = 1.0f;
  if constexpr (kIsFp8<Cache>) scale = (head.tensor == kK ? kv.k_scale : kv.v_scale)[head.kv_head];
  Vec<Cache, kCount> codes_low, codes_high;
  for (int j = 0; j < kCount; ++j) {
    codes_low.x[j] = Cache::of(kIsFp8<Cache> ? first[j] / scale : first[j]);
    codes_high.x[j] = Cache::of(kIsFp8<Cache> ? second[j] / scale : second[j]);
  }
  store_vec(cache, codes_low);
  store_vec(cache + kv.head_dim / 2, codes_high);
}

}  // namespace fp8kv::FP8KV_GPU
