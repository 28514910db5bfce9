// Rotates pairs of elements and stores them to the cache. All kernels that append share this, so
// that they store the same bits.
#pragma once

#include "kernels/blocks/vec.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {

enum HeadTensor { kQ, kK, kV };

// Heads are numbered Q's first, then K's, then V's. A query head counts for the KV head that it
// reads, if K and V have heads.
struct Head {
  int tensor;
  int index;    // within the tensor
  int n_heads;  // heads of the tensor
  int kv_head;
};

__device__ inline Head head_of(int number, const RopeArguments& arguments) {
  const int n_heads = arguments.n_heads;
  const int n_kv_heads = arguments.kv.n_kv_heads;
  if (number < n_heads) return {kQ, number, n_heads, number / arguments.group};
  number -= n_heads;
  if (number < n_kv_heads) return {kK, number, n_kv_heads, number};
  return {kV, number - n_kv_heads, n_kv_heads, number - n_kv_heads};
}

// Elements of a head of Q, K or V.
__device__ inline int head_dim_of(const RopeArguments& arguments, int tensor) {
  return tensor == kQ ? arguments.kv.head_dim : tensor == kK ? arguments.k_dim : arguments.v_dim;
}

// The head's elements in a row of Q, K or V.
template <typename T>
__device__ inline T* row_of(const RopeArguments& arguments, const Head& head, int row) {
  void* tensor = head.tensor == kQ ? arguments.q : head.tensor == kK ? arguments.k : arguments.v;
  return static_cast<T*>(tensor) + (static_cast<int64_t>(row) * head.n_heads + head.index) *
                                       head_dim_of(arguments, head.tensor);
}

// The places of a pair's two elements in their head of `head_dim`. Rotated pairs have the lower
// numbers. The other pairs merely group two elements at a similar distance.
struct PairPlace {
  int first;
  int second;
  bool turns;

  __device__ PairPlace(const RopeArguments& arguments, int head_dim, int pair) {
    const int most = head_dim / 2, rotated = arguments.rotary_dim / 2;
    const int half = rotated < most ? rotated : most;
    turns = pair < half;
    if (arguments.pairs == RopePairs::neighbours) {
      first = 2 * pair;
      second = first + 1;
    } else {
      first = turns ? pair : pair + half;
      second = first + (turns ? half : most - half);
    }
  }
};

// The cosine of the first pair, which is `pair`; the sine is rotary_dim / 2 further on.
__device__ inline const float* angles_of(const RopeArguments& arguments, const Head& head, int row,
                                         int pair) {
  const float* rope = head.tensor == kQ ? arguments.q_rope : arguments.rope;
  return rope + static_cast<int64_t>(arguments.rows.positions[row]) * arguments.rotary_dim + pair;
}

struct Pair {
  float first;
  float second;
};

__device__ inline Pair rotated(Pair x, float cosine, float sine) {
  return {x.first * cosine - x.second * sine, x.second * cosine + x.first * sine};
}

template <typename T, int kCount>
__device__ inline void round_to(float* x) {
  if constexpr (kCount == 1) {
    *x = T::of(*x).value();
  } else {
    for (int j = 0; j < kCount; j += 2) {
      const uint32_t pair = packed_pair<T>(x[j], x[j + 1]);
      x[j] = T{static_cast<uint16_t>(pair)}.value();
      x[j + 1] = T{static_cast<uint16_t>(pair >> 16)}.value();
    }
  }
}

// Rounds kCount numbers to `dtype`, which is looked up once for all.
template <int kCount>
__device__ inline void round_all(float* x, DType dtype) {
  if (dtype == DType::bf16) round_to<Bf16, kCount>(x);
  if (dtype == DType::f16) round_to<F16, kCount>(x);
}

// Stores kCount numbers; FP8 numbers are divided by their scale first.
template <typename Cache, int kCount>
__device__ inline void store_cached(Cache* to, const float* x, float scale) {
  Vec<Cache, kCount> codes;
  if constexpr (kIsFp8<Cache> && kCount > 1) {
    for (int j = 0; j < kCount; j += 2) {
      const uint16_t pair = fp8_codes<Cache::kFormat>(x[j] / scale, x[j + 1] / scale);
      codes.x[j].code = static_cast<uint8_t>(pair);
      codes.x[j + 1].code = static_cast<uint8_t>(pair >> 8);
    }
  } else {
    for (int j = 0; j < kCount; ++j) codes.x[j] = Cache::of(kIsFp8<Cache> ? x[j] / scale : x[j]);
  }
  store_vec(to, codes);
}

// Stores kCount pairs of a head of K or V to the cache, from `place` on.
template <typename Cache, int kCount>
__device__ inline void append(const RopeArguments& arguments, const Head& head, int slot,
                              const PairPlace& place, const float* first, const float* second) {
  const PagedKv& kv = arguments.kv;
  const int64_t at = kv.offset(slot / kv.page_size, head.kv_head, slot % kv.page_size);
  auto* cache = static_cast<Cache*>(head.tensor == kK ? kv.k : kv.v) + at;
  float scale = 1.0f;
  if constexpr (kIsFp8<Cache>) scale = (head.tensor == kK ? kv.k_scale : kv.v_scale)[head.kv_head];
  store_cached<Cache, kCount>(cache + place.first, first, scale);
  store_cached<Cache, kCount>(cache + place.second, second, scale);
}

}  // namespace fp8kv::FP8KV_GPU
