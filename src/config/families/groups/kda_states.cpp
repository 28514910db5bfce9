#include "config/families/groups/kda_states.h"

#include "config/values/config_values.h"

namespace fp8kv {

using enum TensorRole;

void parse_kda(const Json& config, ModelConfig& out) {
  const auto linear = config.find("linear_attn_config");
  const auto at = [&](const char* key, const char* saved) {
    if (linear) check_same(linear->find(key), config.find(saved));
    return linear ? linear->at(key) : config.at(saved);
  };
  RecurrenceConfig& state = out.recurrence.emplace();
  state.k_dim = state.v_dim = in_range(at("head_dim", "linear_head_dim"), kMostStateRows);
  state.k_heads = state.v_heads =
      in_range(at("num_heads", "linear_num_heads"), kLargestDim / kMostStateRows);
  state.conv_width =
      in_range(at("short_conv_kernel_size", "linear_conv_kernel_dim"), kMostConvWidth);
  state.gate = Activation::sigmoid;
  state.steps_by_row = true;
  state.rank = state.k_dim;
}

void refuse_full_gate(const Json& config) {
  if (const auto linear = config.find("linear_attn_config")) {
    refuse_if_set(*linear, "use_full_rank_gate", "a gate that is made in one step");
  }
}

TensorRows kda_tensors(VectorForm rates) {
  return joined({{{"model.layers.{}.self_attn.g_a_proj", {state_gate_down}},
                  {"model.layers.{}.self_attn.g_b_proj", {state_gate}}},
                 ungated_kda_tensors(rates)});
}

TensorRows ungated_kda_tensors(VectorForm rates) {
  return {{"model.layers.{}.self_attn.q_proj", {state_q}},
          {"model.layers.{}.self_attn.k_proj", {state_k}},
          {"model.layers.{}.self_attn.v_proj", {state_v}},
          {"model.layers.{}.self_attn.f_a_proj", {state_step_down}},
          {"model.layers.{}.self_attn.f_b_proj", {state_step}},
          {"model.layers.{}.self_attn.b_proj", {state_strength}},
          {"model.layers.{}.self_attn.q_conv1d", {conv_q}},
          {"model.layers.{}.self_attn.k_conv1d", {conv_k}},
          {"model.layers.{}.self_attn.v_conv1d", {conv_v}},
          {.name = "model.layers.{}.self_attn.A_log",
           .roles = {state_decay},
           .bare = true,
           .form = rates},
          {.name = "model.layers.{}.self_attn.dt_bias", .roles = {state_step_bias}, .bare = true},
          {"model.layers.{}.self_attn.o_norm", {state_norm}},
          {"model.layers.{}.self_attn.o_proj", {state_out}}};
}

}  // namespace fp8kv
