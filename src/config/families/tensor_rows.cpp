#include "config/families/tensor_rows.h"

#include "config/families/tensor_blocks.h"

namespace fp8kv {

using enum TensorRole;

namespace {

// The tensors for per-layer inputs.
TensorRows layer_inputs() {
  return {{"model.embed_tokens_per_layer", {layer_embedding}},
          {"model.per_layer_model_projection", {layer_projection}},
          {"model.per_layer_projection_norm", {layer_projection_norm}},
          {"model.layers.{}.per_layer_input_gate", {input_gate}},
          {"model.layers.{}.per_layer_projection", {input_out}},
          {"model.layers.{}.post_per_layer_input_norm", {input_post_norm}}};
}

}  // namespace

std::span<const TensorRow> llama_tensors() {
  static const TensorRows rows =
      joined({opening(), qkv(), qk_norms(), attention_out(), next_norm(), gated_mlp(), ending()});
  return rows;
}

std::span<const TensorRow> olmo2_tensors() {
  // OLMo 2 has no norms before its blocks.
  static const TensorRows rows =
      joined({{{"model.embed_tokens", {embedding}}},
              qkv(),
              qk_norms(),
              attention_out(),
              {{"model.layers.{}.post_attention_layernorm", {attn_post_norm}}},
              gated_mlp(),
              {{"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

std::span<const TensorRow> gemma2_tensors() {
  // Each block has a norm before it and one after it.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              qk_norms(),
              attention_out(),
              {{"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
               {"model.layers.{}.pre_feedforward_layernorm", {ffn_norm}}},
              gated_mlp(),
              {{"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

std::span<const TensorRow> gemma3n_tensors() {
  static const TensorRows rows =
      joined({{gemma2_tensors().begin(), gemma2_tensors().end()},
              layer_inputs(),
              {{"model.altup_projections.{s}", {stream_in}},
               {"model.altup_unembed_projections.{s}", {stream_out}},
               {"model.layers.{}.altup.router_norm", {stream_norm}},
               {"model.layers.{}.altup.modality_router", {stream_router}},
               {"model.layers.{}.altup.prediction_coefs", {stream_predict}},
               {"model.layers.{}.altup.correction_coefs", {stream_correct}},
               {.name = "model.layers.{}.altup.correct_output_scale",
                .roles = {stream_scale},
                .bare = true},
               {"model.layers.{}.laurel.linear_left", {laurel_down}},
               {"model.layers.{}.laurel.linear_right", {laurel_up}},
               {"model.layers.{}.laurel.post_laurel_norm", {laurel_norm}}}});
  return rows;
}

std::span<const TensorRow> gemma4_tensors() {
  static const TensorRows rows = [] {
    TensorRows all(gemma2_tensors().begin(), gemma2_tensors().end());
    for (const TensorRow& row : layer_inputs()) all.push_back(row);
    for (const TensorRow& row : TensorRows{
             {.name = "model.layers.{}.layer_scalar", .roles = {layer_scale}, .bare = true},
             {.name = "model.layers.{}.router.scale", .roles = {router_norm}, .bare = true},
             {"model.layers.{}.router.proj", {router}},
             {.name = "model.layers.{}.router.per_expert_scale",
             .roles = {expert_factors},
             .bare = true},
             {"model.layers.{}.pre_feedforward_layernorm_2", {experts_norm}},
             {.name = "model.layers.{}.experts.gate_up_proj",
             .roles = {expert_gate, expert_up},
             .bare = true},
             {.name = "model.layers.{}.experts.down_proj", .roles = {expert_down}, .bare = true},
             {"model.layers.{}.post_feedforward_layernorm_2", {experts_post_norm}},
             {"model.layers.{}.post_feedforward_layernorm_1", {dense_post_norm}}}) {
      all.push_back(row);
    }
    return all;
  }();
  return rows;
}

std::span<const TensorRow> gemma4_tensors_apart() {
  // Experts as llm-compressor writes them.
  static const TensorRows rows =
      with_experts(gemma4_tensors(), {{"model.layers.{}.experts.{e}.gate_proj", {expert_gate}},
                                      {"model.layers.{}.experts.{e}.up_proj", {expert_up}},
                                      {"model.layers.{}.experts.{e}.down_proj", {expert_down}}});
  return rows;
}

std::span<const TensorRow> phi3_tensors() {
  static const TensorRows rows = joined({opening(),
                                         {{"model.layers.{}.self_attn.qkv_proj", {q, k, v}}},
                                         attention_out(),
                                         next_norm(),
                                         fused_mlp(),
                                         ending()});
  return rows;
}

std::span<const TensorRow> glm_tensors() {
  static const TensorRows rows =
      joined({opening(), qkv(), attention_out(), next_norm(), fused_mlp(), ending()});
  return rows;
}

std::span<const TensorRow> glm4_tensors() {
  // Each block has a norm before it and one after it; post_attention_layernorm comes before the
  // second block.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              {{"model.layers.{}.post_self_attn_layernorm", {attn_post_norm}}},
              next_norm(),
              fused_mlp(),
              {{"model.layers.{}.post_mlp_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

std::span<const TensorRow> phi_tensors() {
  // One norm serves both blocks.
  static const TensorRows rows = joined({opening(),
                                         qkv(),
                                         {{"model.layers.{}.self_attn.q_layernorm", {q_norm}},
                                          {"model.layers.{}.self_attn.k_layernorm", {k_norm}},
                                          {"model.layers.{}.self_attn.dense", {o}},
                                          {"model.layers.{}.mlp.fc1", {up}},
                                          {"model.layers.{}.mlp.fc2", {down}},
                                          {"model.final_layernorm", {norm}},
                                          {"lm_head", {lm_head}}}});
  return rows;
}

std::span<const TensorRow> stablelm_head_norm_tensors() {
  // Each head of Q and of K has its own norm.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {{"model.layers.{}.self_attn.q_layernorm.norms.{h}", {q_norm}},
               {"model.layers.{}.self_attn.k_layernorm.norms.{h}", {k_norm}}},
              attention_out(),
              next_norm(),
              gated_mlp(),
              ending()});
  return rows;
}

std::span<const TensorRow> starcoder2_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              next_norm(),
              {{"model.layers.{}.mlp.c_fc", {up}}, {"model.layers.{}.mlp.c_proj", {down}}},
              ending()});
  return rows;
}

}  // namespace fp8kv
