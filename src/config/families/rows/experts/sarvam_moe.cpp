// Sarvam 30B: attention of Qwen 3 in one matrix, experts and router of DeepSeek V3.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/sarvam.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void parse_sarvam_moe(const Json& config, ModelConfig& out) {
  config.at("head_dim");  // transformers' default is 64, whatever the width
  const auto bias = config.find("use_qkv_bias");
  check_same(config.find("attention_bias"), bias);
  out.qkv_bias = bias ? bias->as_bool() : config.get_bool("attention_bias", false);
  if (is_on(config, "use_qk_norm")) out.block.qk_norm = QkNorm::per_head;
  parse_sarvam_experts(config, out);
}

std::span<const TensorRow> sarvam_moe_tensors_together() {
  static const TensorRows rows = with_experts(sarvam_moe_tensors(), experts_together());
  return rows;
}

}  // namespace

std::span<const TensorRow> sarvam_moe_tensors() {
  static const TensorRows rows =
      joined({{{"model.word_embeddings", {embedding}},
               {"model.layers.{}.input_layernorm", {attn_norm}},
               {"model.layers.{}.attention.query_key_value", {q, k, v}},
               {"model.layers.{}.attention.query_layernorm", {q_norm}},
               {"model.layers.{}.attention.key_layernorm", {k_norm}},
               {"model.layers.{}.attention.dense", {o}}},
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}},
               {"model.layers.{}.mlp.gate.expert_bias", {choice_bias}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}},
              ending()});
  return rows;
}

void parse_sarvam_experts(const Json& config, ModelConfig& out) {
  check_router_says(config, "score_function", "sigmoid");
  if (!is_on(config, "moe_router_enable_expert_bias")) {
    fail(config.at("moe_router_enable_expert_bias").where(),
         ": is false, expected true: transformers adds the bias of the choice");
  }
  config.find("router_dtype");  // of weights in vLLM
  check_same(config.find("n_routed_experts"), config.find("num_experts"));
  check_same(config.find("n_shared_experts"), config.find("num_shared_experts"));
  parse_experts(config,
                {{"n_routed_experts", "num_experts", "num_local_experts"}, "moe_intermediate_size"},
                out);
  if (!out.experts) at_any(config, {"n_routed_experts", "num_experts"});
  if (!out.experts) return;
  parse_sigmoid_router(config, out);
  ExpertsConfig& experts = *out.experts;
  experts.routing.scale = positive_or(config, "routed_scaling_factor", 2.5);
  const auto shared = find_any(config, {"n_shared_experts", "num_shared_experts"});
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 0, kLargestDim / experts.hidden_dim) : 1);
}

Architecture sarvam_moe() {
  return {.name = "SarvamMoEForCausalLM",
          .model_type = "sarvam_moe",
          .summary = "Sarvam 30B",
          .parse = parse_sarvam_moe,
          .tensors = sarvam_moe_tensors(),
          .other_tensors = sarvam_moe_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 8e6, .reads_part = true}};
}

}  // namespace fp8kv
