#include "model/parts/feed_forward/dense.h"

#include <array>

#include "model/parts/projections.h"

namespace fp8kv {
namespace {

TensorView columns_of(const Tensor& buffer, int64_t rows, int64_t width) {
  const TensorView& all = buffer.view();
  FP8KV_ASSERT(rows <= all.shape[0] && width <= all.shape[1]);
  return {all.data, all.dtype, Shape{rows, width}};
}

// Whether gate and up are activated by Backend::hidden.
bool is_plain(const LayerWeights& weights, const BlockConfig& block) {
  return !weights.gate_cut && !weights.swiglu.dense && !weights.xielu &&
         block.gate_multiplier == 1.0;
}

}  // namespace

DenseForward::DenseForward(ForwardMemory& memory, const ModelConfig& config, int64_t hidden_dim)
    : backend_(memory.backend()), block_(config.block) {
  if (block_.gated) gate_ = memory.rows(hidden_dim);
  up_ = memory.rows(hidden_dim);
}

ConstTensorView DenseForward::entered(const ConstTensorView& x, const InputNorm& in) {
  if (!in.norm) return x;
  backend_.norm(x, *in.norm, in.scratch);
  return in.scratch;
}

TensorView DenseForward::run(const LayerWeights& weights, const ConstTensorView& x,
                             const InputNorm& in) {
  const int64_t n = x.shape[0], hidden_dim = weights.up.weight.shape[0];
  const TensorView up = columns_of(up_, n, hidden_dim);
  HiddenProducts products{{}, project_to(weights.up, up), block_.activation};
  if (block_.gated) {
    products.gate = project_to(*weights.gate, columns_of(gate_, n, hidden_dim));
  }
  if (is_plain(weights, block_)) {
    backend_.hidden(x, in, products);
    return products.gate ? products.gate->out : up;
  }
  if (weights.xielu) {
    backend_.linear(entered(x, in), std::array{products.up});
    backend_.xielu(up, *weights.xielu);
    return up;
  }
  backend_.linear(entered(x, in), std::array{products.gate.value(), products.up});
  activate(weights, products.gate->out, up);
  return products.gate->out;
}

void DenseForward::activate(const LayerWeights& weights, const TensorView& gate,
                            const TensorView& up) {
  if (weights.swiglu.dense) return backend_.clamped_swiglu(*weights.swiglu.dense, gate, up);
  if (block_.gate_multiplier != 1.0) {
    backend_.scale(gate, static_cast<float>(block_.gate_multiplier), 0.0f);
  }
  if (weights.gate_cut) backend_.cut_below(gate, *weights.gate_cut);
  backend_.activate(block_.activation, gate, up);
}

}  // namespace fp8kv
