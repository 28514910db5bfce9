#include "kernels/launch.h"
#include "kernels/norm.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

// One block per row; kCount elements at a time. x and out may be the same.
template <typename T, int kCount>
__global__ void rmsnorm_kernel(const T* x, const T* weight, float eps, T* out, int64_t dim) {
  Shared shared;
  const int64_t row = block_index().x;
  x += row * dim;
  out += row * dim;
  float factor[1];
  norm_factors<kCount>(x, dim, eps, shared, factor);
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kNormThreads) {
    store_vec(out + i,
              normalised(load_vec<kCount>(x + i), load_vec<kCount>(weight + i), factor[0]));
  }
}

}  // namespace

void rmsnorm(Stream stream, const ConstMatrix& x, const void* weight, float eps, void* out) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const auto run = [&](auto kernel) {
      launch("rmsnorm", kernel, {static_cast<unsigned>(x.rows)}, kNormThreads, norm_shared_bytes(1),
             stream, static_cast<const T*>(x.data), static_cast<const T*>(weight), eps,
             static_cast<T*>(out), x.cols);
    };
    const bool vectors = in_vectors<T>(x.data, x.cols) && in_vectors<T>(weight, x.cols) &&
                         in_vectors<T>(out, x.cols);
    vectors ? run(rmsnorm_kernel<T, kVector<T>>) : run(rmsnorm_kernel<T, 1>);
  });
}

}  // namespace fp8kv::FP8KV_GPU
