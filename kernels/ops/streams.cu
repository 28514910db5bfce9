// Ops on rows of models with several residual streams.
#include "core/model/streams.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/elements.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_rows.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// One element per thread.
template <typename T, typename W>
__global__ void scale_columns_kernel(T* x, const W* weight, float offset, int64_t count,
                                     int64_t dim) {
  after_previous();
  const int64_t at = int64_t{block_index().x} * kThreads + thread_index();
  if (at >= count) return;
  x[at] = T::of(x[at].value() * (weight[at % dim].value() + offset));
}

// One column of a row per thread, for all streams: y may be x.
template <typename T>
__global__ void mix_streams_kernel(const T* x, const float* shares, StreamSum how, T* y,
                                   StreamMix mix, int64_t columns) {
  after_previous();
  const int64_t at = int64_t{block_index().x} * kThreads + thread_index();
  if (at >= columns) return;
  const int64_t row = at / mix.dim, column = at % mix.dim;
  x += row * mix.from * mix.dim + column;
  y += row * mix.to * mix.dim + column;
  shares += row * mix.to * mix.from;
  float read[kMostMixed];
  for (int k = 0; k < kMostMixed; ++k) read[k] = k < mix.from ? x[k * mix.dim].value() : 0.0f;
  for (int64_t s = 0; s < mix.to; ++s) {
    float sum = 0.0f;
    for (int k = 0; k < kMostMixed; ++k) {
      if (k < mix.from) sum = fused(shares[s * mix.from + k] + how.more, read[k], sum);
    }
    y[s * mix.dim] = T::of(how.onto ? y[s * mix.dim].value() + sum : sum);
  }
}

// The sum over the block of `value` for each element of a row, in every thread.
template <typename Value>
__device__ inline float sum_of(int64_t dim, Shared& shared, const Value& value) {
  float sum[1] = {};
  for (int64_t i = thread_index(); i < dim; i += kThreads) sum[0] += value(i);
  block_sums<kWarps>(sum, shared.take<float>(kWarps));
  return sum[0];
}

// NaN stays NaN.
__device__ inline float root(float x) {
  return x > 0.0f ? x * rsqrt_exact(x) : x;
}

// One warp per row.
template <typename T>
__global__ void stream_gates_kernel(const T* keys, const T* queries, float* gates, int64_t rows,
                                    int64_t dim) {
  after_previous();
  const int64_t row = int64_t{block_index().x} * kWarps + warp_index();
  if (row >= rows) return;
  float sum = 0.0f;
  for (int64_t i = lane_index(); i < dim; i += kWarp) {
    sum = fused(keys[row * dim + i].value(), queries[row * dim + i].value(), sum);
  }
  const float product = warp_sum(sum) * rsqrt_exact(static_cast<float>(dim));
  const float size = fabsf(product) < kLeastProduct ? kLeastProduct : fabsf(product);
  const float signed_root = product < 0.0f ? -root(size) : product > 0.0f ? root(size) : product;
  if (lane_index() == 0) gates[row] = activated<Activation::sigmoid>(signed_root);
}

// One block per row.
template <typename T>
__global__ void match_rms_kernel(T* x, const T* like, int64_t dim) {
  after_previous();
  Shared shared;
  x += int64_t{block_index().x} * dim;
  like += int64_t{block_index().x} * dim;
  const auto square = [](const T& value) { return value.value() * value.value(); };
  const auto all = static_cast<float>(dim);
  const float wanted = sum_of(dim, shared, [&](int64_t i) { return square(like[i]); }) / all;
  const float found = sum_of(dim, shared, [&](int64_t i) { return square(x[i]); }) / all;
  const float least = found < kLeastMeanSquare ? kLeastMeanSquare : found;
  const float factor = root(wanted / least);
  for (int64_t i = thread_index(); i < dim; i += kThreads) x[i] = T::of(x[i].value() * factor);
}

// One block per row.
template <typename T>
__global__ void cut_below_kernel(T* x, float deviations, int64_t dim) {
  after_previous();
  Shared shared;
  x += int64_t{block_index().x} * dim;
  const auto all = static_cast<float>(dim);
  const float mean = sum_of(dim, shared, [&](int64_t i) { return x[i].value(); }) / all;
  const float squares = sum_of(dim, shared, [&](int64_t i) {
    const float off = x[i].value() - mean;
    return off * off;
  });
  const float cut = mean + deviations * root(squares / all);
  for (int64_t i = thread_index(); i < dim; i += kThreads) {
    const float value = x[i].value();
    x[i] = T::of(value < cut ? 0.0f : value - cut);
  }
}

Grid grid_for(int64_t count) {
  return {static_cast<unsigned>((count + kThreads - 1) / kThreads)};
}

// Two sums, one after the other.
constexpr size_t kSharedBytes = 2 * ((kWarps * sizeof(float) + 15) / 16 * 16);

}  // namespace

void scale_columns(Stream stream, const Matrix& x, const ColumnWeights& by) {
  const int64_t count = x.rows * x.cols;
  with_compute_type(x.dtype, [&]<typename T>(T) {
    const auto scale = [&]<typename W>(W) {
      launch("scale_columns", scale_columns_kernel<T, W>, grid_for(count), kThreads, 0, stream,
             static_cast<T*>(x.data), static_cast<const W*>(by.weight), by.offset, count, x.cols);
    };
    by.weight_f32 ? scale(F32()) : scale(T());
  });
}

void mix_streams(Stream stream, const MixedStreams& streams, const StreamSum& how,
                 const StreamMix& mix) {
  const int64_t columns = mix.rows * mix.dim;
  with_compute_type(streams.dtype, [&]<typename T>(T) {
    launch("mix_streams", mix_streams_kernel<T>, grid_for(columns), kThreads, 0, stream,
           static_cast<const T*>(streams.x), streams.shares, how, static_cast<T*>(streams.y), mix,
           columns);
  });
}

void stream_gates(Stream stream, const ConstMatrix& keys, const void* queries, float* gates) {
  with_compute_type(keys.dtype, [&]<typename T>(T) {
    launch("stream_gates", stream_gates_kernel<T>,
           {static_cast<unsigned>((keys.rows + kWarps - 1) / kWarps)}, kThreads, 0, stream,
           static_cast<const T*>(keys.data), static_cast<const T*>(queries), gates, keys.rows,
           keys.cols);
  });
}

void match_rms(Stream stream, const Matrix& x, const void* like) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    launch("match_rms", match_rms_kernel<T>, {static_cast<unsigned>(x.rows)}, kThreads,
           kSharedBytes, stream, static_cast<T*>(x.data), static_cast<const T*>(like), x.cols);
  });
}

void cut_below(Stream stream, const Matrix& x, float deviations) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    launch("cut_below", cut_below_kernel<T>, {static_cast<unsigned>(x.rows)}, kThreads,
           kSharedBytes, stream, static_cast<T*>(x.data), deviations, x.cols);
  });
}

}  // namespace fp8kv::FP8KV_GPU
