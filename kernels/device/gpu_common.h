// The parts of gpu.h that CUDA and HIP spell alike.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include <hip/hip_runtime.h>
#endif

namespace fp8kv::FP8KV_GPU {

__device__ __forceinline__ int thread_index() {
  return static_cast<int>(threadIdx.x);
}
__device__ __forceinline__ void block_sync() {
  __syncthreads();
}
__device__ __forceinline__ float exp_exact(float x) {
  return expf(x);
}
__device__ __forceinline__ float tanh_exact(float x) {
  return tanhf(x);
}
__device__ __forceinline__ float log1p_exact(float x) {
  return log1pf(x);
}
__device__ __forceinline__ float erf_exact(float x) {
  return erff(x);
}

__device__ __forceinline__ void atomic_max(uint64_t* to, uint64_t value) {
  atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}
__device__ __forceinline__ void atomic_add(uint64_t* to, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}
__device__ __forceinline__ void shared_add(uint32_t* to, uint32_t value) {
  atomicAdd(to, value);
}

extern __shared__ __align__(16) unsigned char fp8kv_shared[];

class Shared {
 public:
  template <typename T>
  __device__ __forceinline__ T* take(size_t count) {
    T* piece = reinterpret_cast<T*>(fp8kv_shared + used_);
    used_ += (count * sizeof(T) + 15) / 16 * 16;
    return piece;
  }

 private:
  size_t used_ = 0;
};

}  // namespace fp8kv::FP8KV_GPU
