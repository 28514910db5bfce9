// Hyper-connections: shares by which rows read and write their residual streams.
#include "core/model/streams.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_rows.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

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
  const int of_row = args.write != nullptr ? 2 * count : count;
  const float* products = args.products + row * of_row;
  const auto term = [&](int i, int kind) {
    return products[i] * factor * number_at(args.scale, args.scale_dtype, kind) +
           number_at(args.base, args.base_dtype, i);
  };
  if (thread >= count) return;
  args.read[row * count + thread] = activated<Activation::sigmoid>(term(thread, 0)) + args.eps;
  if (args.write == nullptr) return;
  args.write[row * count + thread] =
      args.most_written * activated<Activation::sigmoid>(term(count + thread, 1)) + args.eps;
}

}  // namespace

void hyper_shares(Stream stream, DType dtype, int64_t n, const HyperArguments& arguments) {
  with_compute_type(dtype, [&]<typename T>(T) {
    launch("hyper_shares", hyper_shares_kernel<T>, {static_cast<unsigned>(n)}, kThreads,
           kWarps * sizeof(float), stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
