#include "model/parts/attention_gate.h"

#include <algorithm>
#include <array>

#include "model/parts/projections.h"

namespace fp8kv {
namespace {

TensorView part_of(const Tensor& buffer, int64_t rows, int64_t width) {
  return {buffer.view().data, buffer.view().dtype, Shape{rows, width}};
}

}  // namespace

AttentionGateForward::AttentionGateForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()), kind_(config.block.attention_gate) {
  int64_t width = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const int64_t v_dim = config.latent ? config.latent->v_dim : config.layer(i).v_head_dim;
    width = std::max(width, config.n_heads_of(i) * v_dim);
  }
  gate_ = memory.rows(width);
  if (is_of_heads(kind_)) heads_ = memory.rows(config.n_heads);
}

TensorView AttentionGateForward::run(const Linear& product, const ConstTensorView& x,
                                     const ConstTensorView& attended) {
  const int64_t n = x.shape[0], width = attended.shape[1];
  const TensorView gate = part_of(gate_, n, width);
  if (is_of_heads(kind_)) {
    const int64_t heads = product.weight.shape[0];
    const TensorView of_heads = part_of(heads_, n, heads);
    backend_.linear(x, std::array{project_to(product, of_heads)});
    // Repeats a head's number for each of its elements.
    backend_.arrange(of_heads, {.row = 1, .column = 0}, part_of(gate_, n * heads, width / heads));
  } else {
    backend_.linear(x, std::array{project_to(product, gate)});
  }
  const bool sigmoid = kind_ == AttentionGate::sigmoid || kind_ == AttentionGate::sigmoid_of_heads;
  backend_.activate(sigmoid ? Activation::sigmoid : Activation::softplus, gate, attended);
  return gate;
}

}  // namespace fp8kv
