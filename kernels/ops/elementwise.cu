// Small ops on whole rows between products: they read and write memory once.
#include "core/numbers/half.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/vec.cuh"
#include "kernels/launch_rows.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;

__device__ inline int64_t first_element(int per_thread) {
  return (static_cast<int64_t>(block_index().x) * kThreads + thread_index()) * per_thread;
}

// One vector of kCount elements per thread. `up` may be null.
template <Activation A, typename T, int kCount>
__global__ void activate_kernel(T* x, const T* up, int64_t count) {
  after_previous();
  const int64_t at = first_element(kCount);
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

// One vector of kCount elements per thread.
template <typename T, int kCount>
__global__ void clamped_swiglu_kernel(ClampedSwiglu how, T* gate, const T* up, int64_t count) {
  after_previous();
  const int64_t at = first_element(kCount);
  if (at >= count) return;
  auto values = load_vec<kCount>(gate + at);
  const auto ups = load_vec<kCount>(up + at);
  for (int j = 0; j < kCount; ++j) {
    values.x[j] = T::of(clamped(how, values.x[j].value(), ups.x[j].value()));
  }
  store_vec(gate + at, values);
}

// One vector of kCount elements per thread.
template <typename T, int kCount>
__global__ void add_kernel(T* x, const T* y, float multiplier, int64_t count) {
  after_previous();
  const int64_t at = first_element(kCount);
  if (at >= count) return;
  auto values = load_vec<kCount>(x + at);
  const auto others = load_vec<kCount>(y + at);
  for (int j = 0; j < kCount; ++j) {
    values.x[j] = T::of(values.x[j].value() + multiplier * others.x[j].value());
  }
  store_vec(x + at, values);
}

// One vector of kCount elements per thread.
template <typename T, int kCount>
__global__ void scale_kernel(T* x, float multiplier, float cap, int64_t count) {
  after_previous();
  const int64_t at = first_element(kCount);
  if (at >= count) return;
  auto values = load_vec<kCount>(x + at);
  for (int j = 0; j < kCount; ++j) {
    const float scaled = values.x[j].value() * multiplier;
    values.x[j] = T::of(cap != 0.0f ? cap * tanh_exact(scaled / cap) : scaled);
  }
  store_vec(x + at, values);
}

// One vector of kCount elements per thread.
template <typename T, int kCount>
__global__ void xielu_kernel(T* x, Xielu numbers, int64_t count) {
  after_previous();
  const int64_t at = first_element(kCount);
  if (at >= count) return;
  auto values = load_vec<kCount>(x + at);
  for (int j = 0; j < kCount; ++j) {
    const float value = values.x[j].value();
    const float least = value < numbers.eps ? value : numbers.eps;
    const float curve = value > 0.0f ? numbers.positive * value * value
                                     : numbers.negative * (exp_exact(least) - 1.0f - value);
    values.x[j] = T::of(fused(numbers.beta, value, curve));
  }
  store_vec(x + at, values);
}

// Elements per thread: so many that the last step, one atomic per warp in global memory, hardly
// counts.
constexpr int kPerThread = 64;

// A thread takes vectors of kCount elements, kThreads apart.
template <typename T, int kCount>
__global__ void amax_kernel(const T* x, int64_t count, uint64_t* out) {
  after_previous();
  const int64_t begin = static_cast<int64_t>(block_index().x) * kThreads * kPerThread;
  uint32_t most = 0;
  for (int i = 0; i < kPerThread; i += kCount) {
    const int64_t at = begin + static_cast<int64_t>(i) * kThreads + thread_index() * kCount;
    if (at >= count) break;
    const auto values = load_vec<kCount>(x + at);
    for (int j = 0; j < kCount; ++j) {
      const uint32_t bits = float_bits(values.x[j].value()) & 0x7FFFFFFFu;
      most = bits > most ? bits : most;
    }
  }
  raise_to_largest(most, out);
}

Grid grid_for(int64_t count, int per_thread) {
  const int64_t per_block = int64_t{kThreads} * per_thread;
  return {static_cast<unsigned>((count + per_block - 1) / per_block)};
}

}  // namespace

void activate(Stream stream, Activation activation, const Elements& x, const void* up) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    with_activation(activation, [&]<Activation A>(ActivationTag<A>) {
      const bool vectors = in_vectors<T>(x.data, x.count) && in_vectors<T>(up, x.count);
      launch("activate", vectors ? activate_kernel<A, T, kVector<T>> : activate_kernel<A, T, 1>,
             grid_for(x.count, vectors ? kVector<T> : 1), kThreads, 0, stream,
             static_cast<T*>(x.data), static_cast<const T*>(up), x.count);
    });
  });
}

void clamped_swiglu(Stream stream, const ClampedSwiglu& how, const Elements& gate, const void* up) {
  with_compute_type(gate.dtype, [&]<typename T>(T) {
    const bool vectors = in_vectors<T>(gate.data, gate.count) && in_vectors<T>(up, gate.count);
    launch("clamped_swiglu",
           vectors ? clamped_swiglu_kernel<T, kVector<T>> : clamped_swiglu_kernel<T, 1>,
           grid_for(gate.count, vectors ? kVector<T> : 1), kThreads, 0, stream, how,
           static_cast<T*>(gate.data), static_cast<const T*>(up), gate.count);
  });
}

void add(Stream stream, const Elements& x, const void* y, float multiplier) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const bool vectors = in_vectors<T>(x.data, x.count) && in_vectors<T>(y, x.count);
    launch("add", vectors ? add_kernel<T, kVector<T>> : add_kernel<T, 1>,
           grid_for(x.count, vectors ? kVector<T> : 1), kThreads, 0, stream,
           static_cast<T*>(x.data), static_cast<const T*>(y), multiplier, x.count);
  });
}

void scale(Stream stream, const Elements& x, float multiplier, float cap) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const bool vectors = in_vectors<T>(x.data, x.count);
    launch("scale", vectors ? scale_kernel<T, kVector<T>> : scale_kernel<T, 1>,
           grid_for(x.count, vectors ? kVector<T> : 1), kThreads, 0, stream,
           static_cast<T*>(x.data), multiplier, cap, x.count);
  });
}

void xielu(Stream stream, const Elements& x, const Xielu& numbers) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const bool vectors = in_vectors<T>(x.data, x.count);
    launch("xielu", vectors ? xielu_kernel<T, kVector<T>> : xielu_kernel<T, 1>,
           grid_for(x.count, vectors ? kVector<T> : 1), kThreads, 0, stream,
           static_cast<T*>(x.data), numbers, x.count);
  });
}

void amax(Stream stream, const ConstElements& x, uint64_t* out) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const bool vectors = in_vectors<T>(x.data, x.count);
    launch("amax", vectors ? amax_kernel<T, kVector<T>> : amax_kernel<T, 1>,
           grid_for(x.count, kPerThread), kThreads, 0, stream, static_cast<const T*>(x.data),
           x.count, out);
  });
}

}  // namespace fp8kv::FP8KV_GPU
