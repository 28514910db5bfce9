// Laguna: attention of Qwen 3 with query heads by layer, a gate by softplus, and a rotation of its
// own in layers with a window. Experts and router of DeepSeek V3 without groups.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

AttentionGate gate_of(const Json& config) {
  const auto gating = config.find("gating");
  if (!gating || (gating->is_bool() && gating->as_bool())) return AttentionGate::softplus_of_heads;
  const std::string kind = gating->is_string() ? gating->as_string() : "";
  if (kind == "per-head") return AttentionGate::softplus_of_heads;
  if (kind == "per-element") return AttentionGate::softplus;
  fail(gating->where(), ": is ", gating->brief(), ", expected true, 'per-head' or 'per-element'");
}

// transformers and vLLM differ in what these keys do, or do not compute them.
void refuse_disputed(const Json& config) {
  const auto cap = config.find("moe_router_logit_softcapping");
  if (cap && cap->as_double() != 0) {
    fail(cap->where(), ": is ", cap->brief(),
         ", expected 0: a cap of the router's logits is not supported");
  }
  refuse_if_set(config, "moe_apply_router_weight_on_input", "weights of an expert's input");
  for (const char* key : {"rope_theta", "rope_scaling", "swa_rope_parameters"}) {
    if (!config.has(key)) continue;
    fail(config.at(key).where(), ": is ", config.at(key).brief(),
         ", expected null: transformers ignores it here. Write rope_parameters with an object for "
         "'full_attention' and one for 'sliding_attention'");
  }
  config.at("rope_parameters");
}

void parse_laguna_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"num_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (!out.experts) return;
  set_plain_sigmoid_router(config, "moe_routed_scaling_factor", 1.0, out);
  out.experts->shared_hidden_dim =
      in_range(config.at("shared_expert_intermediate_size"), kLargestDim);
}

void parse_laguna(const Json& config, ModelConfig& out) {
  refuse_disputed(config);
  config.at("head_dim");  // the models' default is no quotient
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  out.block.attention_gate = gate_of(config);
  parse_laguna_experts(config, out);
}

std::span<const TensorRow> laguna_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {{"model.layers.{}.self_attn.g_proj", {attn_gate}}},
              qk_norms(),
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}},
               {"model.layers.{}.mlp.experts.e_score_correction_bias", {choice_bias}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_expert.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_expert.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_expert.down_proj", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> laguna_tensors_together() {
  static const TensorRows rows = with_experts(laguna_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture laguna() {
  return {.name = "LagunaForCausalLM",
          .model_type = "laguna",
          .summary = "Laguna",
          .windows = true,
          .parse = parse_laguna,
          .tensors = laguna_tensors(),
          .other_tensors = laguna_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 5e5, .reads_part = true, .by_layer_type = true}};
}

}  // namespace fp8kv
