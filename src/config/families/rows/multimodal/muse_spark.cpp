// Muse Spark: Muse Glimmer with norms of attention's output by heads, gates where a block's output
// meets the stream, and experts at another width than the stream's.
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/muse.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void parse_spark_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"num_local_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  experts.inner_dim = in_range(config.at("moe_hidden_size"), kLargestDim);
  experts.inner_norm = experts.each_norm = true;
  experts.logit_multiplier = out.block.logit_multiplier;
  experts.choice_bias = experts.f32_router = true;
  experts.routing.score = RouterScore::sigmoid;
  experts.routing.normalise = true;
  experts.routing.epsilon = 1e-15;
  experts.routing.scale = positive_or(config, "routed_scaling_factor", 1.0);
}

void parse_muse_spark(const Json& config, ModelConfig& out) {
  // vLLM has no defaults for these.
  for (const char* key : {"layer_types", "layer_rope_theta", "mlp_layer_types"}) config.at(key);
  refuse_if_set(config, "num_shared_experts", "a shared expert");
  parse_muse(config, 0.1767766952966369, out);
  BlockConfig& block = out.block;
  block.q_multiplier = positive_number(config.at("qk_scale_factor"));
  block.attended_norm = block.bare_attn_post_norm = block.ffn_post_weighs_first = true;
  block.gate_temperature = positive_or(config, "residual_gate_temperature", 0.3);
  parse_muse_rotations(config, out);
  parse_spark_experts(config, out);
}

TensorRow bare_gate(const char* name, TensorRole role) {
  return {.name = name, .roles = {role}, .bare = true};
}

TensorRows spark_experts() {
  return {{"model.layers.{}.mlp.gate", {router}},
          {"model.layers.{}.mlp.gate.e_score_correction_bias", {choice_bias}},
          {"model.layers.{}.mlp.pre_expert_proj", {experts_in}},
          {"model.layers.{}.mlp.pre_expert_norm", {experts_in_norm}},
          {"model.layers.{}.mlp.experts.{e}.gate_proj", {expert_gate}},
          {"model.layers.{}.mlp.experts.{e}.up_proj", {expert_up}},
          {"model.layers.{}.mlp.experts.{e}.down_proj", {expert_down}},
          {"model.layers.{}.mlp.experts.post_expert_norm", {each_expert_norm}},
          {"model.layers.{}.mlp.post_expert_proj", {experts_out}}};
}

std::span<const TensorRow> muse_spark_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {{"model.layers.{}.self_attn.gate_proj", {attn_gate}}},
              attention_out(),
              {bare_gate("model.layers.{}.post_attention_residual_gate.gate", attn_residual_gate),
               {"model.layers.{}.pre_feedforward_layernorm", {ffn_norm}}},
              gated_mlp(),
              spark_experts(),
              {{"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}},
               bare_gate("model.layers.{}.post_feedforward_residual_gate.gate", ffn_residual_gate)},
              ending()});
  return rows;
}

std::span<const TensorRow> muse_spark_tensors_together() {
  static const TensorRows rows = with_experts(muse_spark_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture muse_spark() {
  return {.name = "MuseSparkForConditionalGeneration",
          .model_type = "muse_spark",
          .summary = "Muse Spark",
          .windows = true,
          .parse = parse_muse_spark,
          .tensors = muse_spark_tensors(),
          .other_tensors = muse_spark_tensors_together(),
          .activations = kSilu};
}

}  // namespace fp8kv
