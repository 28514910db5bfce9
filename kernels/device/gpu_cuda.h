// gpu.h for nvcc: sm_80 and newer.
#pragma once

#include <cuda_runtime.h>

#include "kernels/device/gpu_common.h"
#include "kernels/device/gpu_runtime.h"

namespace fp8kv::FP8KV_GPU {

inline constexpr int kWarp = 32;
inline constexpr bool kHasAsync = true;
inline constexpr int kLoneWarps = 1;
// The limit of sm_86 and sm_89; sm_80 has 163 KiB, sm_90 227.
inline constexpr size_t kMostSharedBytes = 99 * 1024;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr bool kHardwareFp8 = true;
#else
inline constexpr bool kHardwareFp8 = false;
#endif

inline constexpr bool kProductsFlush = false;

__device__ __forceinline__ int lane_index() {
  return thread_index() % kWarp;
}
__device__ __forceinline__ int warp_index() {
  return thread_index() / kWarp;
}
__device__ __forceinline__ int warp_uniform(int value) {
  return value;
}
__device__ __forceinline__ uint3 block_index() {
  return blockIdx;
}
__device__ __forceinline__ dim3 grid_size() {
  return gridDim;
}
__device__ __forceinline__ void warp_sync() {
  __syncwarp();
}
template <typename T>
__device__ __forceinline__ T warp_xor(T value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, mask);
}
template <typename T>
__device__ __forceinline__ T warp_from(T value, int lane) {
  return __shfl_sync(0xFFFFFFFFu, value, lane);
}
__device__ __forceinline__ uint64_t warp_ballot(bool predicate) {
  return __ballot_sync(0xFFFFFFFFu, predicate);
}

__device__ __forceinline__ float fused(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float rsqrt_exact(float x) {
  return __fdiv_rn(1.0f, __fsqrt_rn(x));
}
__device__ __forceinline__ uint16_t f16_code(float x) {
  uint16_t code;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return code;
}
__device__ __forceinline__ float f16_value(uint16_t code) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
  return x;
}

__device__ __forceinline__ uint16_t bf16_code(float x) {
  uint16_t code;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return code;
}

// Converts two numbers at once, four times as fast as one by one.
__device__ __forceinline__ uint32_t bf16_codes(float first, float second) {
  uint32_t codes;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(codes) : "f"(second), "f"(first));
  return codes;
}

template <unsigned kSelect>
__device__ __forceinline__ uint32_t select_bytes(uint32_t low, uint32_t high) {
  return __byte_perm(low, high, kSelect);
}

// REQUIRES kProductsFlush.
template <int kExponent>
__device__ __forceinline__ uint32_t scaled_pair(uint32_t pair) {
  return pair;
}

// REQUIRES kHardwareFp8.
__device__ __forceinline__ void convert_e4m3(uint32_t codes, uint32_t* pairs) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm("{\n.reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n}"
      : "=r"(pairs[0]), "=r"(pairs[1])
      : "r"(codes));
#endif
}

template <Fp8Format F>
__device__ __forceinline__ uint16_t encode_fp8(float first, float second) {
  uint16_t codes = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (F == Fp8Format::e4m3fn) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  }
#endif
  return codes;
}

__device__ __forceinline__ void after_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void prefetch(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

// If `valid` is false, fills the kBytes with zeros.
template <int kBytes, bool kLine = false>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? kBytes : 0;
  if constexpr (kBytes == 16 && kLine) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
                 "r"(bytes)
                 : "memory");
  } else if constexpr (kBytes == 16) {  // past L1, which streams do not profit from
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}
__device__ __forceinline__ void async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kGroupsLeft>
__device__ __forceinline__ void async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroupsLeft) : "memory");
}

// mma.sync.m16n8k16. A lane supplies rows row(lane) and row(lane) + 8 of A, and column row(lane) of
// B, each at four depths (places along the sum). The instruction's four depths are not adjacent.
// But any four give the same sum, as long as A and B use the same.
struct Mma {
  static constexpr int kCols = 8;
  static constexpr int kRowsPerLane = 2;
  static constexpr int kLaneCols = 2;   // element i has column i % 2 of these
  static constexpr int kColStride = 4;  // lanes this far apart share columns

  static __device__ __forceinline__ int row(int lane) { return lane / 4; }
  static __device__ __forceinline__ int group(int lane) { return lane % 4; }
  // Row and column of element i < 4 of a lane's accumulator.
  static __device__ __forceinline__ int acc_row(int lane, int i) { return lane / 4 + 8 * (i / 2); }
  static __device__ __forceinline__ int acc_col(int lane, int i) { return 2 * (lane % 4) + i % 2; }
  // The row at depth i < 4 of a lane, in the result that scores_to_operand turned into an operand.
  static __device__ __forceinline__ int depth(int lane, int i) {
    return 2 * (lane % 4) + i % 2 + 8 * (i / 2);
  }

  // A lane that supplies column `col` of B.
  static __device__ __forceinline__ int lane_of_col(int col) { return 4 * col; }
  static constexpr int kGroupStride = 1;  // lanes this far apart supply the same row and column

  // acc [4] += A B.   a [kRowsPerLane][2] pairs of T, b [2] pairs of T.
  template <typename T>
  static __device__ __forceinline__ void run(float* acc, const uint32_t* a, const uint32_t* b) {
    if constexpr (T::kIsBf16) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
          : "r"(a[0]), "r"(a[2]), "r"(a[1]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    } else {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
          : "r"(a[0]), "r"(a[2]), "r"(a[1]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }

  // Loads operand A, 16 x 16 elements of 16 bits, from shared memory. Its rows (its columns with
  // kTransposed) are `pitch` bytes apart, a multiple of 16. Depths are in the order of memory: lane
  // group g has 2 g, 2 g + 1, 2 g + 8 and 2 g + 9.
  static constexpr bool kHasLoads = true;
  template <bool kTransposed>
  static __device__ __forceinline__ void load(const unsigned char* from, int pitch, uint32_t* a) {
    const int lane = lane_index();
    const int row = kTransposed ? lane % 8 + lane / 16 * 8 : lane % 16;
    const int half = kTransposed ? lane / 8 % 2 : lane / 16;
    const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(from + row * pitch + half * 16));
    if constexpr (kTransposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a[0]), "=r"(a[2]), "=r"(a[1]), "=r"(a[3])
                   : "r"(at)
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a[0]), "=r"(a[2]), "=r"(a[1]), "=r"(a[3])
                   : "r"(at)
                   : "memory");
    }
  }

  // Turns a lane's accumulator into an operand B with the same matrix. The accumulator is rounded
  // and packed as pairs (0, 1) and (2, 3).
  static __device__ __forceinline__ void scores_to_operand(const uint32_t* scores, uint32_t* b) {
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(b[0]) : "r"(scores[0]));
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(b[1]) : "r"(scores[1]));
  }
};

}  // namespace fp8kv::FP8KV_GPU
