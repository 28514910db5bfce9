#include "config/families/groups/state_architectures.h"

#include <algorithm>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Reads the keys that all models with gated DeltaNet share.
void parse_delta_net(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  if (!is_on(config, "attn_output_gate")) {
    fail(config.at("attn_output_gate").where(),
         ": is false: attention without a gate is not supported in this architecture");
  }
  out.block.norm_plus_one = true;
  out.block.qk_norm = QkNorm::per_head;
  out.block.attention_gate = AttentionGate::sigmoid;
  parse_delta_sizes(config, out);
}

void parse_shared_expert(const Json& config, ModelConfig& out) {
  if (!out.experts) return;
  out.experts->shared_hidden_dim =
      in_range(config.at("shared_expert_intermediate_size"), kLargestDim);
  out.experts->shared_gated = true;
}

void parse_qwen3_next(const Json& config, ModelConfig& out) {
  parse_delta_net(config, out);
  parse_experts(config, {{"num_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  if (out.experts) out.experts->routing.normalise = is_on(config, "norm_topk_prob");
  parse_shared_expert(config, out);
}

}  // namespace

void parse_qwen3_5_moe(const Json& config, ModelConfig& out) {
  parse_delta_net(config, out);
  parse_experts(config, {{"num_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (out.experts) out.experts->routing.normalise = true;
  parse_shared_expert(config, out);
}

TensorRows gated_qkv() {
  return {{"model.layers.{}.self_attn.q_proj", {q, attn_gate}, TensorLayout::by_head},
          {"model.layers.{}.self_attn.k_proj", {k}},
          {"model.layers.{}.self_attn.v_proj", {v}}};
}

TensorRows state_rest() {
  return {{"model.layers.{}.linear_attn.conv1d", {conv_q, conv_k, conv_v}},
          {"model.layers.{}.linear_attn.A_log", {state_decay}, TensorLayout::rows, true},
          {"model.layers.{}.linear_attn.dt_bias", {state_step_bias}, TensorLayout::rows, true},
          {"model.layers.{}.linear_attn.norm", {state_norm}},
          {"model.layers.{}.linear_attn.out_proj", {state_out}}};
}

TensorRows state_projections() {
  return {{"model.layers.{}.linear_attn.in_proj_qkv", {state_q, state_k, state_v}},
          {"model.layers.{}.linear_attn.in_proj_z", {state_gate}},
          {"model.layers.{}.linear_attn.in_proj_b", {state_strength}},
          {"model.layers.{}.linear_attn.in_proj_a", {state_step}}};
}

TensorRows gated_shared_expert() {
  return {{"model.layers.{}.mlp.shared_expert.gate_proj", {shared_gate}},
          {"model.layers.{}.mlp.shared_expert.up_proj", {shared_up}},
          {"model.layers.{}.mlp.shared_expert.down_proj", {shared_down}},
          {"model.layers.{}.mlp.shared_expert_gate", {shared_router}}};
}

namespace {

std::span<const TensorRow> qwen3_next_tensors() {
  static const TensorRows rows = joined({opening(),
                                         gated_qkv(),
                                         qk_norms(),
                                         attention_out(),
                                         {{"model.layers.{}.linear_attn.in_proj_qkvz",
                                           {state_q, state_k, state_v, state_gate},
                                           TensorLayout::by_state_head},
                                          {"model.layers.{}.linear_attn.in_proj_ba",
                                           {state_strength, state_step},
                                           TensorLayout::by_state_head}},
                                         state_rest(),
                                         next_norm(),
                                         gated_mlp(),
                                         {{"model.layers.{}.mlp.gate", {router}}},
                                         experts_apart(),
                                         gated_shared_expert(),
                                         ending()});
  return rows;
}

std::span<const TensorRow> qwen3_5_tensors() {
  static const TensorRows rows =
      joined({opening(), gated_qkv(), qk_norms(), attention_out(), state_projections(),
              state_rest(), next_norm(), gated_mlp(), ending()});
  return rows;
}

std::span<const TensorRow> qwen3_5_moe_tensors() {
  static const TensorRows rows = joined({opening(),
                                         gated_qkv(),
                                         qk_norms(),
                                         attention_out(),
                                         state_projections(),
                                         state_rest(),
                                         next_norm(),
                                         {{"model.layers.{}.mlp.gate", {router}}},
                                         experts_apart(),
                                         gated_shared_expert(),
                                         ending()});
  return rows;
}

std::span<const TensorRow> qwen3_next_tensors_together() {
  static const TensorRows rows = with_experts(qwen3_next_tensors(), experts_together());
  return rows;
}

// Experts as in the published files.
std::span<const TensorRow> qwen3_5_moe_tensors_together() {
  static const TensorRows rows = with_experts(qwen3_5_moe_tensors(), experts_together());
  return rows;
}

constexpr RopeStyle kQuarter = {.part = 0.25, .reads_part = true};

const Architecture kStates[] = {
    {.name = "Qwen3NextForCausalLM",
     .model_type = "qwen3_next",
     .summary = "Qwen3-Next",
     .states = true,
     .parse = parse_qwen3_next,
     .tensors = qwen3_next_tensors(),
     .other_tensors = qwen3_next_tensors_together(),
     .activations = kSilu,
     .rope = kQuarter},
    {.name = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .summary = "Qwen 3.5, 3.6 and 3.8, dense",
     .states = true,
     .parse = parse_delta_net,
     .tensors = qwen3_5_tensors(),
     .activations = kSilu,
     .rope = kQuarter},
    {.name = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .summary = "Qwen 3.5, 3.6 and 3.8 with experts",
     .states = true,
     .parse = parse_qwen3_5_moe,
     .tensors = qwen3_5_moe_tensors(),
     .other_tensors = qwen3_5_moe_tensors_together(),
     .activations = kSilu,
     .hidden_dims = 1,
     .rope = kQuarter},
};

}  // namespace

void parse_delta_sizes(const Json& config, ModelConfig& out) {
  RecurrenceConfig& state = out.recurrence.emplace();
  state.k_heads = in_range(config.at("linear_num_key_heads"), kLargestDim / kMostStateRows);
  state.k_dim = in_range(config.at("linear_key_head_dim"), kMostStateRows);
  const Json v_heads = config.at("linear_num_value_heads");
  state.v_heads = in_range(v_heads, kLargestDim);
  state.v_dim = in_range(config.at("linear_value_head_dim"), kLargestDim / state.v_heads);
  state.conv_width = in_range(config.at("linear_conv_kernel_dim"), kMostConvWidth);
  if (state.v_heads % state.k_heads != 0) {
    fail(v_heads.where(), ": is ", state.v_heads, ", expected a multiple of the ", state.k_heads,
         " heads of linear_num_key_heads");
  }
}

std::span<const Architecture> state_architectures() {
  return kStates;
}

}  // namespace fp8kv
