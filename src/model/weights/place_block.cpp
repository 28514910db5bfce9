#include "model/weights/place_block.h"

namespace fp8kv {
namespace {

// The matrix that a role of the block places.
Linear* find_linear(TensorRole role, SharedBlockWeights& block) {
  const auto lora = [](std::optional<LoraWeights>& of) -> LoraWeights& {
    return of ? *of : of.emplace();
  };
  switch (role) {
    case TensorRole::q_lora_down:
      return &lora(block.q).down;
    case TensorRole::q_lora_up:
      return &lora(block.q).up;
    case TensorRole::k_lora_down:
      return &lora(block.k).down;
    case TensorRole::k_lora_up:
      return &lora(block.k).up;
    case TensorRole::v_lora_down:
      return &lora(block.v).down;
    case TensorRole::v_lora_up:
      return &lora(block.v).up;
    case TensorRole::ffn_lora_down:
      return &block.ffn_down;
    case TensorRole::gate_lora_up:
      return &block.gate_up;
    case TensorRole::up_lora_up:
      return &block.up_up;
    case TensorRole::block_out:
      return &block.out;
    default:
      return nullptr;
  }
}

}  // namespace

bool place_block(TensorRole role, const Placing& tensor, LayerWeights& layer) {
  if (role == TensorRole::state_in_norm) {
    tensor.into(layer.state_in_norm);
    return true;
  }
  SharedBlockWeights none;
  if (find_linear(role, none) == nullptr) return false;
  if (!layer.shared_block) layer.shared_block.emplace();
  tensor.into(*find_linear(role, *layer.shared_block));
  return true;
}

}  // namespace fp8kv
