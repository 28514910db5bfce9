#include "config/families/tensor_blocks.h"

#include <utility>

namespace fp8kv {

using enum TensorRole;

TensorRows joined(std::initializer_list<TensorRows> blocks) {
  TensorRows all;
  for (const TensorRows& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return all;
}

TensorRows with_experts(std::span<const TensorRow> rows, const TensorRows& experts) {
  TensorRows all;
  bool placed = false;
  for (const TensorRow& row : rows) {
    const TensorRole role = row.roles.front();
    if (role != expert_gate && role != expert_up && role != expert_down) {
      all.push_back(row);
    } else if (!std::exchange(placed, true)) {
      all.insert(all.end(), experts.begin(), experts.end());
    }
  }
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

TensorRows ungated_mlp() {
  return {{"model.layers.{}.mlp.up_proj", {up}}, {"model.layers.{}.mlp.down_proj", {down}}};
}

TensorRows experts_apart() {
  return {{"model.layers.{}.mlp.experts.{e}.gate_proj", {expert_gate}},
          {"model.layers.{}.mlp.experts.{e}.up_proj", {expert_up}},
          {"model.layers.{}.mlp.experts.{e}.down_proj", {expert_down}}};
}

TensorRows granite_experts_apart() {
  return {{"model.layers.{}.block_sparse_moe.experts.{e}.gate_proj", {expert_gate}},
          {"model.layers.{}.block_sparse_moe.experts.{e}.up_proj", {expert_up}},
          {"model.layers.{}.block_sparse_moe.experts.{e}.down_proj", {expert_down}}};
}

TensorRows experts_together() {
  return {{.name = "model.layers.{}.mlp.experts.gate_up_proj",
           .roles = {expert_gate, expert_up},
           .bare = true},
          {.name = "model.layers.{}.mlp.experts.down_proj", .roles = {expert_down}, .bare = true}};
}

TensorRows mixtral_experts() {
  return {{"model.layers.{}.block_sparse_moe.gate", {router}},
          {"model.layers.{}.block_sparse_moe.experts.{e}.w1", {expert_gate}},
          {"model.layers.{}.block_sparse_moe.experts.{e}.w3", {expert_up}},
          {"model.layers.{}.block_sparse_moe.experts.{e}.w2", {expert_down}}};
}

TensorRows deepseek_experts() {
  return joined({{{"model.layers.{}.mlp.gate", {router}},
                  {"model.layers.{}.mlp.gate.e_score_correction_bias", {choice_bias}}},
                 experts_apart(),
                 {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
                  {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
                  {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}}});
}

TensorRows ending() {
  return {{"model.norm", {norm}}, {"lm_head", {lm_head}}};
}

}  // namespace fp8kv
