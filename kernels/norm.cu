#include "kernels/launch.h"
#include "kernels/reduce.cuh"
#include "kernels/vec.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// One block per row; kCount elements at a time. x and out may be the same.
template <typename T, int kCount>
__global__ void rmsnorm_kernel(const T* x, const T* weight, float eps, T* out, int64_t dim) {
  Shared shared;
  float* partials = shared.take<float>(kWarps);
  const int64_t row = block_index().x;
  x += row * dim;
  out += row * dim;
  float squares = 0.0f;
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kThreads) {
    const auto part = load_vec<kCount>(x + i);
    for (int j = 0; j < kCount; ++j) {
      squares = fused(part.x[j].value(), part.x[j].value(), squares);
    }
  }
  squares = block_sum<kWarps>(squares, partials);
  const float factor = rsqrt_exact(squares / static_cast<float>(dim) + eps);
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kThreads) {
    auto part = load_vec<kCount>(x + i);
    const auto weights = load_vec<kCount>(weight + i);
    for (int j = 0; j < kCount; ++j) {
      part.x[j] = T::of(part.x[j].value() * factor * weights.x[j].value());
    }
    store_vec(out + i, part);
  }
}

}  // namespace

void rmsnorm(Stream stream, const ConstMatrix& x, const void* weight, float eps, void* out) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const auto run = [&](auto kernel) {
      launch("rmsnorm", kernel, {static_cast<unsigned>(x.rows)}, kThreads, 16 * kWarps, stream,
             static_cast<const T*>(x.data), static_cast<const T*>(weight), eps,
             static_cast<T*>(out), x.cols);
    };
    const bool vectors = in_vectors<T>(x.data, x.cols) && in_vectors<T>(weight, x.cols) &&
                         in_vectors<T>(out, x.cols);
    vectors ? run(rmsnorm_kernel<T, kVector<T>>) : run(rmsnorm_kernel<T, 1>);
  });
}

}  // namespace fp8kv::FP8KV_GPU
