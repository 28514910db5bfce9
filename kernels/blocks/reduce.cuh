// Sums and maxima over a warp or a block, always in the same order.
#pragma once

#include "kernels/device/gpu.h"

namespace fp8kv::FP8KV_GPU {

// Every lane gets the sum over `kLanes` neighbouring lanes.
template <int kLanes = kWarp>
__device__ inline float warp_sum(float x) {
  for (int mask = kLanes / 2; mask > 0; mask /= 2) x += warp_xor(x, mask);
  return x;
}

template <int kLanes = kWarp>
__device__ inline float warp_max(float x) {
  for (int mask = kLanes / 2; mask > 0; mask /= 2) x = fmaxf(x, warp_xor(x, mask));
  return x;
}

// A warp's threads raise `to` to the largest of their `bits`.
__device__ inline void raise_to_largest(uint32_t bits, uint64_t* to) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const uint32_t other = warp_xor(bits, mask);
    bits = other > bits ? other : bits;
  }
  if (lane_index() == 0) atomic_max(to, bits);
}

// Every thread gets the sums over the block of kCount numbers. `partials` is shared memory for
// kCount * kWarps floats.
template <int kWarps, int kCount>
__device__ inline void block_sums(float (&x)[kCount], float* partials) {
  for (int i = 0; i < kCount; ++i) {
    x[i] = warp_sum(x[i]);
    if (lane_index() == 0) partials[i * kWarps + warp_index()] = x[i];
  }
  block_sync();
  for (int i = 0; i < kCount; ++i) {
    x[i] = 0.0f;
    for (int warp = 0; warp < kWarps; ++warp) x[i] += partials[i * kWarps + warp];
  }
}

}  // namespace fp8kv::FP8KV_GPU
