#pragma once

#include "kernels/blocks/elements.cuh"

namespace fp8kv::FP8KV_GPU {

// silu(gate) * up.
template <typename T>
__device__ inline T gated(T gate, T up) {
  const float x = gate.value();
  return T::of(x / (1.0f + exp_exact(-x)) * up.value());
}

}  // namespace fp8kv::FP8KV_GPU
