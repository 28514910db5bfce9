// The first half of a feed-forward block for few rows, in one kernel: each warp has matching
// columns of gate and up.
#include "base/error.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/fused.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

template <typename T>
__device__ inline ColumnPair<T> pair_at(const Products& products, int64_t column) {
  const int64_t at = column * products.in_dim;
  return {static_cast<const T*>(products.each[0].weight) + at,
          static_cast<const T*>(products.each[1].weight) + at};
}

// Any number of blocks; a warp takes one column at a time.
template <Activation A, typename T, int kRows>
__global__ void __launch_bounds__(kNormThreads, kFusedBlocks) hidden_kernel(NormedProducts normed) {
  Shared shared;
  const Products& products = normed.products;
  const Product& gate = products.each[0];
  int64_t column = first_pair();
  if (column < gate.out_dim) pair_at<T>(products, column).prefetch_start(products.in_dim);
  after_previous();
  const T* rows = normalised_rows<T, kRows>(normed, shared);
  for (; column < gate.out_dim; column += pair_step()) {
    float results[2];
    pair_products<T, kRows>(pair_at<T>(products, column), rows, products.in_dim, results);
    if (lane_index() < kRows) {
      static_cast<T*>(gate.out)[lane_index() * gate.out_dim + column] =
          gated<A>(T::of(with_bias<T>(gate, column, results[0])),
                   T::of(with_bias<T>(products.each[1], column, results[1])));
    }
  }
}

template <Activation A>
void run(Stream stream, DType dtype, const NormedProducts& normed, int multiprocessors) {
  with_compute_type(dtype, [&]<typename T>(T) {
    void (*const kernels[])(NormedProducts) = {hidden_kernel<A, T, 1>, hidden_kernel<A, T, 2>,
                                               hidden_kernel<A, T, 3>, hidden_kernel<A, T, 4>};
    launch_fused<T>("hidden", kernels, normed.products.each[0].out_dim, multiprocessors, stream,
                    normed.products, normed);
  });
}

}  // namespace

// Activations of models with a gate. With many columns the separate launches are faster: an H200
// takes 65.7 us for 14,336 columns (5 rounds) of 4,096, and 69.2 us in one launch.
bool takes_hidden(Activation activation, int64_t columns, int multiprocessors) {
  const bool has_kernel = activation == Activation::silu || activation == Activation::gelu_tanh;
  return has_kernel && fused_rounds(columns, multiprocessors) <= 2;
}

void hidden(Stream stream, DType dtype, Activation activation, const NormedProducts& normed,
            int multiprocessors) {
  switch (activation) {
    case Activation::silu:
      return run<Activation::silu>(stream, dtype, normed, multiprocessors);
    case Activation::gelu_tanh:
      return run<Activation::gelu_tanh>(stream, dtype, normed, multiprocessors);
    case Activation::gelu_erf:
    case Activation::relu:
    case Activation::relu_squared:
    case Activation::sigmoid:
    case Activation::softplus:
      break;
  }
  assertion_failed("takes_hidden", __FILE__, __LINE__);
}

}  // namespace fp8kv::FP8KV_GPU
