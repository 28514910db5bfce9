// Kimi Linear: latent attention that does not rotate, in a few layers. The others keep the state of
// Kimi Delta Attention, a gated DeltaNet whose rows decay by steps of their own.
#include <cmath>
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/kda_states.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/kimi.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void check_moe_step(const Json& config) {
  const auto step = config.find("moe_layer_freq");
  if (step && step->as_int() != 1) {
    fail(step->where(), ": is ", step->brief(),
         ", expected 1: experts in some of the layers are not supported");
  }
}

TensorRow dense(const char* name, const char* saved, TensorRole role) {
  return {.name = name, .roles = {role}, .other_name = saved};
}

}  // namespace

void check_kimi_lists(const Json& config, const ModelConfig& out) {
  const auto linear = config.find("linear_attn_config");
  if (!linear || !config.has("layer_types")) return;
  const Json full = linear->at("full_attn_layers");
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    bool attends = false;
    for (size_t j = 0; j < full.size(); ++j) attends = attends || full[j].as_int() == i + 1;
    if (attends == out.attends(i)) continue;
    fail(full.where(), attends ? ": has layer " : ": lacks layer ", i + 1,
         ", contrary to layer_types: runtimes differ in which they go by");
  }
}

void parse_kimi_experts(const Json& config, ModelConfig& out) {
  check_moe_step(config);
  parse_experts(config, {{"num_experts"}, "moe_intermediate_size", "num_experts_per_token"}, out);
  if (!out.experts) config.at("num_experts");
  check_first_dense(config, out);
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  check_router_says(config, "moe_router_activation_func", "sigmoid");
  parse_expert_groups(config, out, "num_expert_group");
  if (!is_on(config, "use_grouped_topk") && experts.routing.groups > 1) {
    fail(config.at("use_grouped_topk").where(), ": is false, but num_expert_group is ",
         experts.routing.groups);
  }
  experts.choice_bias = true;
  experts.routing.score = RouterScore::sigmoid;
  experts.routing.normalise = is_on(config, "moe_renormalize");
  experts.routing.epsilon = 1e-20;
  experts.routing.scale = positive_number(config.at("routed_scaling_factor"));
  experts.shared_hidden_dim = experts.hidden_dim * in_range(config.at("num_shared_experts"),
                                                            kLargestDim / experts.hidden_dim);
}

TensorRows kimi_dense_or_experts() {
  return {
      dense("model.layers.{}.mlp.gate_proj", "model.layers.{}.block_sparse_moe.gate_proj", gate),
      dense("model.layers.{}.mlp.up_proj", "model.layers.{}.block_sparse_moe.up_proj", up),
      dense("model.layers.{}.mlp.down_proj", "model.layers.{}.block_sparse_moe.down_proj", down),
      {"model.layers.{}.block_sparse_moe.gate", {router}},
      {"model.layers.{}.block_sparse_moe.gate.e_score_correction_bias", {choice_bias}},
      {"model.layers.{}.block_sparse_moe.experts.{e}.w1", {expert_gate}},
      {"model.layers.{}.block_sparse_moe.experts.{e}.w3", {expert_up}},
      {"model.layers.{}.block_sparse_moe.experts.{e}.w2", {expert_down}},
      {"model.layers.{}.block_sparse_moe.shared_experts.gate_proj", {shared_gate}},
      {"model.layers.{}.block_sparse_moe.shared_experts.up_proj", {shared_up}},
      {"model.layers.{}.block_sparse_moe.shared_experts.down_proj", {shared_down}}};
}

namespace {

// Keys of Kimi K3, whose layers are other ones, and those of vLLM alone. Throws where they say
// something other than Kimi Linear has.
void check_granted_by_kimi(const Json& config) {
  refuse_if_set(config, "mla_use_output_gate", "a gate of latent attention");
  refuse_if_set(config, "tie_word_embeddings", "an embedding in place of lm_head");
  for (const char* key : {"attn_res_block_size", "routed_expert_hidden_size"}) {
    const auto found = config.find(key);
    if (found)
      fail(found->where(), ": is ", found->brief(), ", expected null in this architecture");
  }
  if (!is_on(config, "mla_use_nope")) {
    fail(config.at("mla_use_nope").where(),
         ": is false, expected true: latent attention does not rotate in this architecture");
  }
}

TensorRows kimi_tensors(bool q_in_two) {
  return joined({opening(), latent_attention(q_in_two), attention_out(),
                 kda_tensors(VectorForm::inner), next_norm(), kimi_dense_or_experts(), ending()});
}

std::span<const TensorRow> kimi_q_tensors() {
  static const TensorRows rows = kimi_tensors(true);
  return rows;
}

std::span<const TensorRow> kimi_linear_tensors() {
  static const TensorRows rows = kimi_tensors(false);
  return rows;
}

void parse_kimi_linear(const Json& config, ModelConfig& out) {
  if (!config.has("layer_types")) config.at("linear_attn_config");
  for (const char* key : {"rope_scaling", "rope_theta"}) config.find(key);  // nothing rotates
  check_granted_by_kimi(config);
  check_kimi_lists(config, out);
  parse_latent(config, out);
  // Unlike in DeepSeek V3, no rope changes the scale of scores.
  const auto q_dim = static_cast<double>(out.latent->nope_dim + out.latent->rope_dim);
  out.block.attention_scale = 1 / std::sqrt(q_dim);
  out.tensors = out.latent->q_rank > 0 ? kimi_q_tensors() : kimi_linear_tensors();
  refuse_full_gate(config);
  parse_kda(config, out);
  parse_kimi_experts(config, out);
}

}  // namespace

Architecture kimi_linear() {
  return {.name = "KimiLinearForCausalLM",
          .model_type = "kimi_linear",
          .summary = "Kimi Linear",
          .states = true,
          .parse = parse_kimi_linear,
          .tensors = kimi_linear_tensors(),
          .activations = kSilu,
          .rope = {.none = true}};
}

}  // namespace fp8kv
