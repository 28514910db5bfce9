#include <type_traits>

#include "kernels/blocks/norm.cuh"
#include "kernels/launch_rows.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// One block per row; kCount elements at a time. x and out may be the same.
template <typename T, int kCount>
__global__ void rmsnorm_kernel(const T* x, const T* weight, float offset, float eps, T* out,
                               int64_t dim) {
  after_previous();
  Shared shared;
  const int64_t row = block_index().x;
  x += row * dim;
  out += row * dim;
  float factor[1];
  norm_factors<kCount>(x, dim, eps, shared, factor);
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kNormThreads) {
    store_vec(out + i,
              normalised(load_vec<kCount>(x + i), load_vec<kCount>(weight + i), offset, factor[0]));
  }
}

// One warp per row, for rows that fit one vector per lane, such as heads. Gives the bits of
// rmsnorm_kernel, whose other warps would add zeros.
template <typename T, int kCount>
__global__ void rmsnorm_short_kernel(const T* x, const T* weight, float offset, float eps, T* out,
                                     int64_t rows, int64_t dim) {
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
    store_vec(out + row * dim + i, normalised(part, load_vec<kCount>(weight + i), offset, factor));
  }
}

// One warp per row; one element at a time. x and out may be the same. W: the weights' type.
template <typename T, typename W>
__global__ void rmsnorm_any_kernel(const T* x, const W* weight, float offset, float eps, T* out,
                                   int64_t rows, int64_t dim, int64_t kinds) {
  after_previous();
  const int64_t row = int64_t{block_index().x} * kNormWarps + warp_index();
  if (row >= rows) return;
  weight += row % kinds * dim;
  x += row * dim;
  out += row * dim;
  float squares = 0.0f;
  for (int64_t i = lane_index(); i < dim; i += kWarp) {
    squares = fused(x[i].value(), x[i].value(), squares);
  }
  const float factor = rms_factor(warp_sum(squares), dim, eps);
  for (int64_t i = lane_index(); i < dim; i += kWarp) {
    out[i] = T::of(x[i].value() * factor * (weight[i].value() + offset));
  }
}

// One block per row; kCount elements at a time. x and out may be the same. `bias` may be null. W:
// the type of weight and bias.
template <typename T, typename W, int kCount>
__global__ void layernorm_kernel(const T* x, const W* weight, const W* bias, float offset,
                                 float eps, T* out, int64_t dim, int64_t kinds) {
  after_previous();
  Shared shared;
  const int64_t row = block_index().x;
  weight += row % kinds * dim;
  x += row * dim;
  out += row * dim;
  const auto each = [&](const auto& work) {
    for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kNormThreads) {
      work(i, load_vec<kCount>(x + i));
    }
  };
  float sum[1] = {};
  each([&](int64_t, const Vec<T, kCount>& part) {
    for (int j = 0; j < kCount; ++j) sum[0] += part.x[j].value();
  });
  block_sums<kNormWarps>(sum, shared.take<float>(kNormWarps));
  const float mean = sum[0] / static_cast<float>(dim);
  float squares[1] = {};
  each([&](int64_t, const Vec<T, kCount>& part) {
    for (int j = 0; j < kCount; ++j) {
      const float off = part.x[j].value() - mean;
      squares[0] = fused(off, off, squares[0]);
    }
  });
  block_sums<kNormWarps>(squares, shared.take<float>(kNormWarps));
  const float factor = rms_factor(squares[0], dim, eps);
  each([&](int64_t i, Vec<T, kCount> part) {
    const auto weights = load_vec<kCount>(weight + i);
    Vec<W, kCount> biases = {};
    if (bias != nullptr) biases = load_vec<kCount>(bias + i);
    for (int j = 0; j < kCount; ++j) {
      const float normed = (part.x[j].value() - mean) * factor * (weights.x[j].value() + offset);
      part.x[j] = T::of(normed + biases.x[j].value());
    }
    store_vec(out + i, part);
  });
}

// Calls run(kCount, from, weights, to) with the number of elements to take at a time.
template <typename T, typename Run>
void with_vectors(const ConstMatrix& x, const NormWeights& norm, void* out, const Run& run) {
  const bool vectors = in_vectors<T>(x.data, x.cols) && in_vectors<T>(norm.weight, x.cols) &&
                       in_vectors<T>(norm.bias, x.cols) && in_vectors<T>(out, x.cols);
  const auto* from = static_cast<const T*>(x.data);
  const auto* weights = static_cast<const T*>(norm.weight);
  auto* to = static_cast<T*>(out);
  if (vectors) {
    run(std::integral_constant<int, kVector<T>>(), from, weights, to);
  } else {
    run(std::integral_constant<int, 1>(), from, weights, to);
  }
}

}  // namespace

void rmsnorm(Stream stream, const ConstMatrix& x, const NormWeights& norm, void* out) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const auto any = [&]<typename W>(W) {
      const auto blocks = static_cast<unsigned>((x.rows + kNormWarps - 1) / kNormWarps);
      launch("rmsnorm", rmsnorm_any_kernel<T, W>, {blocks}, kNormThreads, 0, stream,
             static_cast<const T*>(x.data), static_cast<const W*>(norm.weight), norm.weight_offset,
             norm.eps, static_cast<T*>(out), x.rows, x.cols, norm.kinds);
    };
    if (norm.weight_f32) return any(F32());
    if (norm.kinds > 1) return any(T());
    with_vectors<T>(
        x, norm, out,
        [&]<int kCount>(std::integral_constant<int, kCount>, const T* from, const T* weights,
                        T* to) {
          if (x.cols <= kCount * kWarp) {
            const auto blocks = static_cast<unsigned>((x.rows + kNormWarps - 1) / kNormWarps);
            launch("rmsnorm", rmsnorm_short_kernel<T, kCount>, {blocks}, kNormThreads, 0, stream,
                   from, weights, norm.weight_offset, norm.eps, to, x.rows, x.cols);
          } else {
            launch("rmsnorm", rmsnorm_kernel<T, kCount>, {static_cast<unsigned>(x.rows)},
                   kNormThreads, norm_shared_bytes(1), stream, from, weights, norm.weight_offset,
                   norm.eps, to, x.cols);
          }
        });
  });
}

void layernorm(Stream stream, const ConstMatrix& x, const NormWeights& norm, void* out) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const auto launch_kernel = [&]<typename W, int kCount>(const W* weights,
                                                           std::integral_constant<int, kCount>) {
      launch("layernorm", layernorm_kernel<T, W, kCount>, {static_cast<unsigned>(x.rows)},
             kNormThreads, 2 * norm_shared_bytes(1), stream, static_cast<const T*>(x.data), weights,
             static_cast<const W*>(norm.bias), norm.weight_offset, norm.eps, static_cast<T*>(out),
             x.cols, norm.kinds);
    };
    if (norm.weight_f32) {
      return launch_kernel(static_cast<const F32*>(norm.weight), std::integral_constant<int, 1>());
    }
    with_vectors<T>(x, norm, out,
                    [&]<int kCount>(std::integral_constant<int, kCount> count, const T*,
                                    const T* weights, T*) { launch_kernel(weights, count); });
  });
}

}  // namespace fp8kv::FP8KV_GPU
