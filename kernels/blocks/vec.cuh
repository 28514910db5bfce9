// Loads and stores of 16 bytes at a time.
#pragma once

#include "kernels/blocks/elements.cuh"

namespace fp8kv::FP8KV_GPU {

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Vec {
  T x[kCount];
};

// The number of elements in 16 bytes.
template <typename T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

// REQUIRES `from` to be aligned to the vector.
template <int kCount, typename T>
__device__ inline Vec<T, kCount> load_vec(const T* from) {
  return *reinterpret_cast<const Vec<T, kCount>*>(from);
}

template <typename T, int kCount>
__device__ inline void store_vec(T* to, const Vec<T, kCount>& vec) {
  *reinterpret_cast<Vec<T, kCount>*>(to) = vec;
}

// Whether rows of `width` elements from `data` can be read 16 bytes at a time.
template <typename T>
bool in_vectors(const void* data, int64_t width) {
  return width % kVector<T> == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

}  // namespace fp8kv::FP8KV_GPU
