#include "config/families/tensor_blocks.h"

namespace fp8kv {

using enum TensorRole;

TensorRows joined(std::initializer_list<TensorRows> blocks) {
  TensorRows all;
  for (const TensorRows& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return all;
}

TensorRows opening() {
  return {{"model.embed_tokens", {embedding}}, {"model.layers.{}.input_layernorm", {attn_norm}}};
}

TensorRows qkv() {
  return {{"model.layers.{}.self_attn.q_proj", {q}},
          {"model.layers.{}.self_attn.k_proj", {k}},
          {"model.layers.{}.self_attn.v_proj", {v}}};
}

TensorRows qk_norms() {
  return {{"model.layers.{}.self_attn.q_norm", {q_norm}},
          {"model.layers.{}.self_attn.k_norm", {k_norm}}};
}

TensorRows attention_out() {
  return {{"model.layers.{}.self_attn.o_proj", {o}}};
}

TensorRows next_norm() {
  return {{"model.layers.{}.post_attention_layernorm", {ffn_norm}}};
}

TensorRows gated_mlp() {
  return {{"model.layers.{}.mlp.gate_proj", {gate}},
          {"model.layers.{}.mlp.up_proj", {up}},
          {"model.layers.{}.mlp.down_proj", {down}}};
}

TensorRows fused_mlp() {
  return {{"model.layers.{}.mlp.gate_up_proj", {gate, up}},
          {"model.layers.{}.mlp.down_proj", {down}}};
}

TensorRows ending() {
  return {{"model.norm", {norm}}, {"lm_head", {lm_head}}};
}

}  // namespace fp8kv
