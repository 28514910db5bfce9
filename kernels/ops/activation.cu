#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/vec.cuh"
#include "kernels/launch.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;

// One vector of kCount elements per thread.
template <typename T, int kCount>
__global__ void gate_kernel(T* gate, const T* up, int64_t count) {
  after_previous();
  const int64_t at = (static_cast<int64_t>(block_index().x) * kThreads + thread_index()) * kCount;
  if (at >= count) return;
  auto gates = load_vec<kCount>(gate + at);
  const auto ups = load_vec<kCount>(up + at);
  for (int j = 0; j < kCount; ++j) gates.x[j] = gated(gates.x[j], ups.x[j]);
  store_vec(gate + at, gates);
}

}  // namespace

void gate(Stream stream, DType dtype, int64_t count, void* gate, const void* up) {
  with_compute_type(dtype, [&]<typename T>(T) {
    const bool vectors = in_vectors<T>(gate, count) && in_vectors<T>(up, count);
    const int64_t per_block = kThreads * (vectors ? kVector<T> : 1);
    const auto blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
    launch("gate", vectors ? gate_kernel<T, kVector<T>> : gate_kernel<T, 1>, {blocks}, kThreads, 0,
           stream, static_cast<T*>(gate), static_cast<const T*>(up), count);
  });
}

}  // namespace fp8kv::FP8KV_GPU
