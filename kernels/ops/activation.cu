#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/vec.cuh"
#include "kernels/launch.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;

// One vector of kCount elements per thread. `up` may be null.
template <Activation A, typename T, int kCount>
__global__ void activate_kernel(T* x, const T* up, int64_t count) {
  after_previous();
  const int64_t at = (static_cast<int64_t>(block_index().x) * kThreads + thread_index()) * kCount;
  if (at >= count) return;
  auto values = load_vec<kCount>(x + at);
  if (up != nullptr) {
    const auto ups = load_vec<kCount>(up + at);
    for (int j = 0; j < kCount; ++j) values.x[j] = gated<A>(values.x[j], ups.x[j]);
  } else {
    for (int j = 0; j < kCount; ++j) values.x[j] = T::of(activated<A>(values.x[j].value()));
  }
  store_vec(x + at, values);
}

}  // namespace

void activate(Stream stream, DType dtype, Activation activation, int64_t count, void* x,
              const void* up) {
  with_compute_type(dtype, [&]<typename T>(T) {
    with_activation(activation, [&]<Activation A>(ActivationTag<A>) {
      const bool vectors = in_vectors<T>(x, count) && in_vectors<T>(up, count);
      const int64_t per_block = kThreads * (vectors ? kVector<T> : 1);
      const auto blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
      launch("activate", vectors ? activate_kernel<A, T, kVector<T>> : activate_kernel<A, T, 1>,
             {blocks}, kThreads, 0, stream, static_cast<T*>(x), static_cast<const T*>(up), count);
    });
  });
}

}  // namespace fp8kv::FP8KV_GPU
