#include "model/parts/streams/shared_block.h"

#include <array>

#include "model/parts/projections.h"
#include "model/parts/streams/stream_rows.h"

namespace fp8kv {

SharedBlockForward::SharedBlockForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()),
      activation_(config.block.activation),
      hidden_dim_(config.hidden_dim) {
  for (Tensor* each : {&stream_, &input_, &made_}) *each = memory.rows(config.dim);
  for (Tensor* each : {&gate_, &up_}) *each = memory.rows(hidden_dim_);
  low_ = memory.rows(config.shared_block.value().rank);
  chosen_ = memory.rows(config.stream_dim());
}

// Adds the product of x with a matrix of low rank to `out`.
void SharedBlockForward::add_lora(const LoraWeights& lora, const ConstTensorView& x,
                                  const TensorView& out) {
  const TensorView low = low_.first(x.shape[0]);
  backend_.linear(x, std::array{project_to(lora.down, low)});
  backend_.linear(low, std::array{project_onto(lora.up, out)});
}

void SharedBlockForward::project(const LayerWeights& weights, const ConstTensorView& x,
                                 const RopeAppend& args) {
  backend_.linear(x, projections_of(weights.attn, args));
  // With LayerPart::up_to_kv nothing else of the block is there.
  const SharedBlockWeights block = weights.shared_block.value_or(SharedBlockWeights());
  const auto flat = [](const TensorView& heads) {
    return reshaped(heads, {heads.shape[0], heads.shape[1] * heads.shape[2]});
  };
  if (block.q) add_lora(*block.q, x, flat(args.q));
  if (block.k) add_lora(*block.k, x, flat(args.k));
  if (block.v) add_lora(*block.v, x, flat(args.v));
  backend_.rope_append(args);
}

// Adds the block's output to `onto` [n, dim].
void SharedBlockForward::feed(const LayerWeights& weights, const ConstTensorView& attended,
                              const TensorView& onto) {
  const SharedBlockWeights& block = weights.shared_block.value();
  const int64_t n = attended.shape[0];
  const TensorView made = made_.first(n), gate = gate_.first(n), up = up_.first(n);
  const TensorView low = low_.first(n);
  backend_.linear(attended, std::array{project_to(weights.o, made)});
  backend_.norm(made, weights.ffn_norm.value(), made);
  backend_.linear(made, std::array{project_to(weights.gate.value(), gate),
                                   project_to(weights.up, up), project_to(block.ffn_down, low)});
  backend_.linear(low,
                  std::array{project_onto(block.gate_up, gate), project_onto(block.up_up, up)});
  backend_.activate(activation_, gate, up);
  backend_.linear(gate, std::array{project_to(weights.down, made)});
  backend_.linear(made, std::array{project_onto(block.out, onto)});
}

TensorView SharedBlockForward::state_input(const LayerWeights& weights, const ConstTensorView& x,
                                           const std::optional<ConstTensorView>& attended) {
  const TensorView input = input_.first(x.shape[0]);
  copy_stream(backend_, x, 0, input);
  if (attended) feed(weights, *attended, input);
  return input;
}

TensorView SharedBlockForward::stream(const ConstTensorView& x) {
  const TensorView out = stream_.first(x.shape[0]);
  copy_stream(backend_, x, 0, out);
  return out;
}

void SharedBlockForward::put(const ConstTensorView& y, const TensorView& x) {
  put_stream(backend_, y, 0, x);
}

void SharedBlockForward::merge(const ConstTensorView& x, const ConstTensorView& rows,
                               const TensorView& out) {
  const TensorView chosen = chosen_.first(rows.shape[0]);
  backend_.embed(x, rows, chosen);
  copy_stream(backend_, chosen, 0, out);
}

}  // namespace fp8kv
