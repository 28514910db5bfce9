// Hyper-connections: shares by which rows read and write their residual streams.
#include "core/model/streams.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_rows.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
// Sums of the warps, and the shares that mix streams.
constexpr size_t kShared = (kWarps + 3) / 4 * 4 * sizeof(float) +
                           static_cast<size_t>(kMostStreams * kMostStreams) * sizeof(float);

// Divides each of the `count` numbers from `first` on, `step` apart, by their sum plus eps.
__device__ inline void divide_by_sum(float* first, int count, int step, float eps) {
  float sum = eps;
  for (int i = 0; i < count; ++i) sum += first[i * step];
  for (int i = 0; i < count; ++i) first[i * step] /= sum;
}

// Makes shares that mix streams, of the terms in shared memory [from, to]. Threads below `count`
// have a row or a column each; all threads of the block call this.
__device__ inline void mixing_shares(const HyperArguments& args, float* numbers, float* mix) {
  const int count = args.count, thread = thread_index();
  const bool works = thread < count;
  if (works) {
    float* row = numbers + thread * count;
    float most = row[0], sum = 0.0f;
    for (int i = 1; i < count; ++i) most = fmaxf(most, row[i]);
    for (int i = 0; i < count; ++i) sum += row[i] = exp_exact(row[i] - most);
    for (int i = 0; i < count; ++i) row[i] = row[i] / sum + args.eps;
  }
  block_sync();
  if (works) divide_by_sum(numbers + thread, count, count, args.eps);
  block_sync();
  for (int round = 1; round < args.rounds; ++round) {
    if (works) divide_by_sum(numbers + thread * count, count, 1, args.eps);
    block_sync();
    if (works) divide_by_sum(numbers + thread, count, count, args.eps);
    block_sync();
  }
  for (int i = 0; works && i < count; ++i) mix[thread * count + i] = numbers[i * count + thread];
}

// One block per row; a thread for each share.
template <typename T>
__global__ void hyper_shares_kernel(HyperArguments args) {
  after_previous();
  Shared shared;
  const int64_t row = block_index().x;
  const int count = args.count, thread = thread_index();
  const int64_t width = args.count * args.dim;
  const T* x = static_cast<const T*>(args.x) + row * width;
  float squares[1] = {};
  for (int64_t i = thread; i < width; i += kThreads) {
    const float value = x[i].value();
    squares[0] = fused(value, value, squares[0]);
  }
  block_sums<kWarps>(squares, shared.take<float>(kWarps));
  const float factor = rsqrt_exact(squares[0] / static_cast<float>(width) + args.norm_eps);
  const int mixed = args.mix != nullptr ? count * count : 0;
  const int of_row = args.write != nullptr ? 2 * count + mixed : count;
  const float* products = args.products + row * of_row;
  const auto term = [&](int i, int kind) {
    return products[i] * factor * number_at(args.scale, args.scale_dtype, kind) +
           number_at(args.base, args.base_dtype, i);
  };
  float* numbers = shared.take<float>(kMostStreams * kMostStreams);
  if (thread < mixed) numbers[thread] = term(2 * count + thread, 2);
  block_sync();
  if (mixed > 0) mixing_shares(args, numbers, args.mix + row * mixed);
  if (thread >= count) return;
  args.read[row * count + thread] = activated<Activation::sigmoid>(term(thread, 0)) + args.eps;
  if (args.write == nullptr) return;
  args.write[row * count + thread] =
      args.most_written * activated<Activation::sigmoid>(term(count + thread, 1)) +
      args.eps_written;
}

}  // namespace

void hyper_shares(Stream stream, DType dtype, int64_t n, const HyperArguments& arguments) {
  with_compute_type(dtype, [&]<typename T>(T) {
    launch("hyper_shares", hyper_shares_kernel<T>, {static_cast<unsigned>(n)}, kThreads, kShared,
           stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
