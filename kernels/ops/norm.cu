#include <type_traits>

#include "kernels/blocks/norm.cuh"
#include "kernels/launch.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// One block per row; kCount elements at a time. x and out may be the same.
template <typename T, int kCount>
__global__ void rmsnorm_kernel(const T* x, const T* weight, float eps, T* out, int64_t dim) {
  after_previous();
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

// One warp per row, for rows that one vector of each lane holds, such as heads. Has the bits of
// rmsnorm_kernel, whose other warps would add zeros.
template <typename T, int kCount>
__global__ void rmsnorm_short_kernel(const T* x, const T* weight, float eps, T* out, int64_t rows,
                                     int64_t dim) {
  after_previous();
  const int64_t row = int64_t{block_index().x} * kNormWarps + warp_index();
  if (row >= rows) return;
  const int64_t i = kCount * lane_index();
  Vec<T, kCount> part = {};
  if (i < dim) part = load_vec<kCount>(x + row * dim + i);
  float squares = 0.0f;
  for (int j = 0; j < kCount; ++j) squares = fused(part.x[j].value(), part.x[j].value(), squares);
  const float factor = rms_factor(warp_sum(squares), dim, eps);
  if (i < dim) {
    store_vec(out + row * dim + i, normalised(part, load_vec<kCount>(weight + i), factor));
  }
}

}  // namespace

void rmsnorm(Stream stream, const ConstMatrix& x, const void* weight, float eps, void* out) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const auto run = [&]<int kCount>(std::integral_constant<int, kCount>) {
      const auto* from = static_cast<const T*>(x.data);
      const auto* weights = static_cast<const T*>(weight);
      auto* to = static_cast<T*>(out);
      if (x.cols <= kCount * kWarp) {
        const auto blocks = static_cast<unsigned>((x.rows + kNormWarps - 1) / kNormWarps);
        launch("rmsnorm", rmsnorm_short_kernel<T, kCount>, {blocks}, kNormThreads, 0, stream, from,
               weights, eps, to, x.rows, x.cols);
      } else {
        launch("rmsnorm", rmsnorm_kernel<T, kCount>, {static_cast<unsigned>(x.rows)}, kNormThreads,
               norm_shared_bytes(1), stream, from, weights, eps, to, x.cols);
      }
    };
    const bool vectors = in_vectors<T>(x.data, x.cols) && in_vectors<T>(weight, x.cols) &&
                         in_vectors<T>(out, x.cols);
    if (vectors) {
      run(std::integral_constant<int, kVector<T>>());
    } else {
      run(std::integral_constant<int, 1>());
    }
  });
}

}  // namespace fp8kv::FP8KV_GPU
