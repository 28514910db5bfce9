// gpu.h for hipcc: AMD's CDNA (gfx90a and newer of gfx9), ROCm 5.2 and newer.
#pragma once

#include <hip/hip_runtime.h>

#include "kernels/device/gpu_common.h"
#include "kernels/device/gpu_runtime.h"

// ROCm's device library; HIP 5 has no intrinsic for v_exp_f32.
extern "C" __device__ float __ocml_native_exp2_f32(float);

namespace fp8kv::FP8KV_GPU {

// ROCm 7 no longer says at compile time how wide a target's waves are; Device refuses others.
inline constexpr int kWarp = 64;
inline constexpr bool kHasAsync = false;
inline constexpr int kLoneWarps = 0;
inline constexpr size_t kMostSharedBytes = 64 * 1024;
// gfx940's hardware conversions are fnuz; the integer ones serve all formats.
inline constexpr bool kHardwareFp8 = false;
#if defined(__gfx90a__)
inline constexpr bool kProductsFlush = true;
#else
inline constexpr bool kProductsFlush = false;
#endif

__device__ __forceinline__ int lane_index() {
  return thread_index() % kWarp;
}
// Puts the value into a scalar register, so that values derived from it are scalar too.
__device__ __forceinline__ int warp_uniform(int value) {
  return __builtin_amdgcn_readfirstlane(value);
}
__device__ __forceinline__ int warp_index() {
  return warp_uniform(thread_index() / kWarp);
}
__device__ __forceinline__ dim3 block_index() {
  return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
}
__device__ __forceinline__ dim3 grid_size() {
  return dim3(gridDim.x, gridDim.y, gridDim.z);
}
// Lanes of a wave run in lockstep. This keeps the compiler from moving memory accesses across.
__device__ __forceinline__ void warp_sync() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
template <typename T>
__device__ __forceinline__ T warp_xor(T value, int mask) {
  return __shfl_xor(value, mask);
}
template <typename T>
__device__ __forceinline__ T warp_from(T value, int lane) {
  return __shfl(value, lane);
}
__device__ __forceinline__ uint64_t warp_ballot(bool predicate) {
  return __ballot(predicate);
}

__device__ __forceinline__ float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
__device__ __forceinline__ float exp2_fast(float x) {
  return __ocml_native_exp2_f32(x);
}
__device__ __forceinline__ float reciprocal_fast(float x) {
  return __builtin_amdgcn_rcpf(x);
}
__device__ __forceinline__ float rsqrt_exact(float x) {
  return 1.0f / __builtin_sqrtf(x);
}
__device__ __forceinline__ uint16_t f16_code(float x) {
  return __builtin_bit_cast(uint16_t, static_cast<_Float16>(x));
}
__device__ __forceinline__ float f16_value(uint16_t code) {
  return static_cast<float>(__builtin_bit_cast(_Float16, code));
}

__device__ __forceinline__ uint16_t bf16_code(float x) {
  return bf16_from_float(x);
}

__device__ __forceinline__ uint32_t bf16_codes(float first, float second) {
  return static_cast<uint32_t>(bf16_code(first)) | static_cast<uint32_t>(bf16_code(second)) << 16;
}

// v_perm_b32 takes the high word first and a byte per selector.
template <unsigned kSelect>
__device__ __forceinline__ uint32_t select_bytes(uint32_t low, uint32_t high) {
  constexpr unsigned kBytes = (kSelect & 7u) | (kSelect >> 4 & 7u) << 8 |
                              (kSelect >> 8 & 7u) << 16 | (kSelect >> 12 & 7u) << 24;
  return __builtin_amdgcn_perm(high, low, kBytes);
}

template <int kExponent>
__device__ __forceinline__ uint32_t scaled_pair(uint32_t pair) {
  typedef _Float16 Two __attribute__((ext_vector_type(2)));
  constexpr auto kFactor = static_cast<_Float16>(1 << kExponent);
  return __builtin_bit_cast(uint32_t, __builtin_bit_cast(Two, pair) * Two{kFactor, kFactor});
}

// REQUIRES kHardwareFp8.
__device__ __forceinline__ void convert_e4m3(uint32_t, uint32_t*) {}
template <Fp8Format F>
__device__ __forceinline__ uint16_t encode_fp8(float, float) {
  return 0;
}

// Kernels of a stream never overlap.
__device__ __forceinline__ void after_previous() {}

// These targets have no prefetch instruction.
__device__ __forceinline__ void prefetch(const void*) {}

// Copies through registers, at once. Kernels that want loads in flight use LaneQueue.
template <int kBytes, bool kLine = false>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid) {
  typedef uint32_t Words __attribute__((ext_vector_type(kBytes / 4)));
  using Piece = std::conditional_t<kBytes == 4, uint32_t, Words>;
  Piece piece = {};
  if (valid) piece = *static_cast<const Piece*>(global);
  *static_cast<Piece*>(shared) = piece;
}
__device__ __forceinline__ void async_commit() {}
template <int kGroupsLeft>
__device__ __forceinline__ void async_wait() {}

// v_mfma_f32_16x16x16: a lane supplies row(lane) of A and column row(lane) of B, each at the four
// depths from 4 * group(lane). See gpu_cuda.h for the functions.
struct Mma {
  static constexpr int kCols = 16;
  static constexpr int kRowsPerLane = 1;
  static constexpr int kLaneCols = 1;
  static constexpr int kColStride = 16;
  static constexpr int kGroupStride = 16;

  static __device__ __forceinline__ int row(int lane) { return lane % 16; }
  static __device__ __forceinline__ int group(int lane) { return lane / 16; }
  static __device__ __forceinline__ int acc_row(int lane, int i) { return 4 * (lane / 16) + i; }
  static __device__ __forceinline__ int acc_col(int lane, int) { return lane % 16; }
  static __device__ __forceinline__ int depth(int lane, int i) { return 4 * (lane / 16) + i; }
  static __device__ __forceinline__ int lane_of_col(int col) { return col; }

  template <typename T>
  static __device__ __forceinline__ void run(float* acc, const uint32_t* a, const uint32_t* b) {
    typedef float Acc __attribute__((ext_vector_type(4)));
    Acc c = {acc[0], acc[1], acc[2], acc[3]};
    if constexpr (T::kIsBf16) {
      typedef short Four __attribute__((ext_vector_type(4)));
      c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(four<Four>(a), four<Four>(b), c, 0, 0, 0);
    } else {
      typedef _Float16 Four __attribute__((ext_vector_type(4)));
      c = __builtin_amdgcn_mfma_f32_16x16x16f16(four<Four>(a), four<Four>(b), c, 0, 0, 0);
    }
    for (int i = 0; i < 4; ++i) acc[i] = c[i];
  }

  static constexpr bool kHasLoads = false;
  template <bool kTransposed>
  static __device__ __forceinline__ void load(const unsigned char*, int, uint32_t*) {}

  // On AMD, a result already has the layout of an operand.
  static __device__ __forceinline__ void scores_to_operand(const uint32_t* scores, uint32_t* b) {
    b[0] = scores[0];
    b[1] = scores[1];
  }

 private:
  template <typename Four>
  static __device__ __forceinline__ Four four(const uint32_t* pairs) {
    Four out;
    __builtin_memcpy(&out, pairs, sizeof out);
    return out;
  }
};

}  // namespace fp8kv::FP8KV_GPU
