// AFMoE (Trinity): attention of Qwen 3 with gated output and norms around the blocks, where only
// layers with a window rotate. Experts and router of DeepSeek V3 without groups.
#include <cmath>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void parse_afmoe_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"num_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  experts.choice_bias = true;
  experts.routing.score = RouterScore::sigmoid;
  experts.routing.normalise = true;
  experts.routing.epsilon = 1e-20;
  experts.routing.scale = positive_or(config, "route_scale", 1.0);
  const auto shared = config.find("num_shared_experts");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 1, kLargestDim / experts.hidden_dim) : 2);
  check_router_says(config, "score_func", "sigmoid");
  for (const char* key : {"num_expert_groups", "num_limited_groups"}) {
    const auto groups = config.find(key);
    if (!groups || groups->as_int() == 1) continue;
    fail(groups->where(), ": is ", groups->brief(),
         ", expected 1: groups of experts are not supported here");
  }
  if (!is_on(config, "route_norm")) {
    fail(config.at("route_norm").where(),
         ": is false, expected true: weights that are not normalised are not supported here");
  }
}

// Throws if only the period says which layers see all tokens, and it is not the usual one.
void check_period(const Json& config) {
  const auto period = config.find("global_attn_every_n_layers");
  if (!period || period->as_int() == 4 || config.has("layer_types")) return;
  fail(period->where(), ": is ", period->brief(),
       ", expected 4 in a config without layer_types: list the type of each layer there");
}

void parse_afmoe(const Json& config, ModelConfig& out) {
  check_period(config);
  refuse_if_set(config, "attention_bias", "a bias beside the gate of attention");
  out.block.qk_norm = QkNorm::per_head;
  out.block.attention_gate = AttentionGate::sigmoid;
  out.block.norm_place = NormPlace::around;
  if (config.get_bool("mup_enabled", false)) {
    out.block.embed_multiplier = std::sqrt(static_cast<double>(out.dim));
  }
  for (size_t i = 0; i < out.layers.size(); ++i) {
    if (out.layers[i].mixing == Mixing::full) out.layer_ropes[i] = -1;
  }
  parse_afmoe_experts(config, out);
}

std::span<const TensorRow> afmoe_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {{"model.layers.{}.self_attn.gate_proj", {attn_gate}}},
              qk_norms(),
              attention_out(),
              {{"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
               {"model.layers.{}.pre_mlp_layernorm", {ffn_norm}}},
              gated_mlp(),
              {{"model.layers.{}.mlp.router.gate", {router}},
               {"model.layers.{}.mlp.expert_bias", {choice_bias}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}},
               {"model.layers.{}.post_mlp_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

std::span<const TensorRow> afmoe_tensors_together() {
  static const TensorRows rows = with_experts(afmoe_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture afmoe() {
  return {.name = "AfmoeForCausalLM",
          .model_type = "afmoe",
          .summary = "Trinity Nano, Mini and Large",
          .windows = true,
          .parse = parse_afmoe,
          .tensors = afmoe_tensors(),
          .other_tensors = afmoe_tensors_together(),
          .activations = kSilu};
}

}  // namespace fp8kv
