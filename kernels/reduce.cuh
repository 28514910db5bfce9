// Sums and maxima over a warp or a block, in an order that does not depend on anything.
#pragma once

#include "kernels/gpu.h"

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

// Every thread gets the sum over the block. `partials` is shared memory for kWarps floats.
template <int kWarps>
__device__ inline float block_sum(float x, float* partials) {
  x = warp_sum(x);
  if (lane_index() == 0) partials[warp_index()] = x;
  block_sync();
  float sum = 0.0f;
  for (int i = 0; i < kWarps; ++i) sum += partials[i];
  return sum;
}

}  // namespace fp8kv::FP8KV_GPU
