// Jamba: attention without rotation in one layer of a period, Mamba-1 in the others. Experts in
// some layers take the place of a dense part of the same width.
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// The rank of the vector behind the steps; "auto" is hidden_size / 16, rounded up.
int64_t step_rank(const Json& config, int64_t dim) {
  constexpr int64_t kPart = 16;
  const Json rank = config.at("mamba_dt_rank");
  if (!rank.is_string()) return in_range(rank, kLargestDim);
  check_says(config, "mamba_dt_rank", "auto", "rank of steps");
  return (dim + kPart - 1) / kPart;
}

void parse_scan(const Json& config, ModelConfig& out) {
  RecurrenceConfig& state = out.recurrence.emplace();
  state.update = StateUpdate::add;
  state.norm = StateNorm::none;
  state.from_v = state.skip = true;
  state.k_heads = state.v_heads = 1;
  state.k_dim = in_range(config.at("mamba_d_state"), kMostRatedRows);
  state.v_dim = out.dim * in_range(config.at("mamba_expand"), kLargestDim / out.dim);
  state.conv_width = in_range(config.at("mamba_d_conv"), kMostConvWidth);
  state.rank = step_rank(config, out.dim);
  state.conv_bias = is_on(config, "mamba_conv_bias");
  state.bias = state.out_bias = config.get_bool("mamba_proj_bias", false);
  if (!is_on(config, "mamba_inner_layernorms")) {
    fail(config.at("mamba_inner_layernorms").where(),
         ": is false: a state without norms of its steps, K and Q is not supported");
  }
}

void parse_jamba(const Json& config, ModelConfig& out) {
  for (const char* key : {"attn_layer_offset", "attn_layer_period", "expert_layer_offset",
                          "expert_layer_period", "num_key_value_heads"}) {
    config.at(key);
  }
  parse_scan(config, out);
  const Json count = at_any(config, {"num_experts", "num_local_experts"});
  check_same(config.find("num_experts"), config.find("num_local_experts"));
  if (count.as_int() > 1) {
    parse_experts(
        config, {{"num_experts", "num_local_experts"}, "intermediate_size", "num_experts_per_tok"},
        out);
  }
}

TensorRows jamba_state() {
  const auto bare = [](std::string_view name, TensorRole role) {
    return TensorRow{.name = name, .roles = {role}, .bare = true};
  };
  return {{"model.layers.{}.mamba.in_proj", {state_v, state_gate}},
          {"model.layers.{}.mamba.conv1d", {conv_v}},
          {"model.layers.{}.mamba.x_proj", {state_step_down, state_k, state_q}},
          {"model.layers.{}.mamba.dt_layernorm", {state_step_norm}},
          {"model.layers.{}.mamba.b_layernorm", {state_k_norm}},
          {"model.layers.{}.mamba.c_layernorm", {state_q_norm}},
          {"model.layers.{}.mamba.dt_proj", {state_step}},
          bare("model.layers.{}.mamba.dt_proj.bias", state_step_bias),
          bare("model.layers.{}.mamba.A_log", state_decay),
          bare("model.layers.{}.mamba.D", state_skip),
          {"model.layers.{}.mamba.out_proj", {state_out}}};
}

std::span<const TensorRow> jamba_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              jamba_state(),
              {{"model.layers.{}.pre_ff_layernorm", {ffn_norm}},
               {"model.layers.{}.feed_forward.gate_proj", {gate}},
               {"model.layers.{}.feed_forward.up_proj", {up}},
               {"model.layers.{}.feed_forward.down_proj", {down}},
               {"model.layers.{}.feed_forward.router", {router}},
               {"model.layers.{}.feed_forward.experts.{e}.gate_proj", {expert_gate}},
               {"model.layers.{}.feed_forward.experts.{e}.up_proj", {expert_up}},
               {"model.layers.{}.feed_forward.experts.{e}.down_proj", {expert_down}},
               {"model.final_layernorm", {norm}},
               {"lm_head", {lm_head}}}});
  return rows;
}

}  // namespace

Architecture jamba() {
  return {.name = "JambaForCausalLM",
          .model_type = "jamba",
          .summary = "Jamba",
          .states = true,
          .parse = parse_jamba,
          .tensors = jamba_tensors(),
          .activations = kSilu,
          .rope = {.none = true}};
}

}  // namespace fp8kv
