// Step 3.5 and 3.7: attention of Qwen 3 with Gemma's norms, query heads and a rotation by kind of
// layer, and a gate for each head. Experts and router of DeepSeek V3 without groups. Some layers
// clamp their SwiGLU.
#include <cmath>
#include <utility>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kStepInside[] = {"step3p5"};

// vLLM reads these keys, and transformers 5.24 takes it for granted what they say.
void check_granted_by_step(const Json& config) {
  for (const char* key : {"need_fp32_gate", "norm_expert_weight", "use_head_wise_attn_gate",
                          "use_moe_router_bias", "use_qk_norm", "zero_centered"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false: a model without it is not supported");
  }
  refuse_if_set(config, "sink", "a sink of attention");
  refuse_if_set(config, "mlp_bias", "a bias beside experts");
  check_router_says(config, "moe_router_activation", "sigmoid");
  check_says(config, "att_impl_type", "GQA", "attention");
  const auto rotating = config.find("use_rope_layers");
  for (size_t i = 0; rotating && i < rotating->size(); ++i) {
    if ((*rotating)[i].as_double() != 0) continue;
    fail((*rotating)[i].where(), ": is ", (*rotating)[i].brief(),
         ", expected true: transformers rotates every layer");
  }
}

// The limit of each layer in a list; null and 0 mean that the layer does not clamp.
void set_limits(const Json& config, const char* key, std::optional<ClampedSwiglu> LayerSwiglu::*of,
                ModelConfig& out) {
  const auto limits = config.find(key);
  if (!limits || (limits->is_array() && limits->size() == 0)) return;
  if (!limits->is_array() || limits->size() != out.layers.size()) {
    fail(limits->where(), ": is ", limits->brief(), ", expected an array of ",
         count_of(out.layers.size(), "number"));
  }
  out.swiglus.resize(out.layers.size());
  for (size_t i = 0; i < limits->size(); ++i) {
    const Json limit = (*limits)[i];
    if (limit.is_null() || limit.as_double() == 0) continue;
    out.swiglus[i].*of = ClampedSwiglu{.limit = static_cast<float>(positive_number(limit)),
                                       .form = SwigluForm::after};
  }
}

void check_window_heads(const Json& config, const ModelConfig& out) {
  const auto said = config.find("num_sliding_attention_heads");
  for (int64_t i = 0; said && i < out.n_layers(); ++i) {
    if (out.window(i) == 0 || out.n_heads_of(i) == said->as_int()) continue;
    fail(said->where(), ": is ", said->brief(), ", but per_layer_config gives layer ", i, " ",
         count_of(static_cast<uint64_t>(out.n_heads_of(i)), "head"));
  }
}

void parse_step_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"n_routed_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("n_routed_experts");
  if (!out.experts) return;
  set_plain_sigmoid_router(config, "moe_router_scaling_factor", 1.0, out);
  out.experts->shared_hidden_dim = in_range(config.at("share_expert_dim"), kLargestDim);
}

void parse_step(const Json& config, ModelConfig& out) {
  check_granted_by_step(config);
  check_window_heads(config, out);
  // The models' defaults are other numbers than those of the common form. Without layer_types
  // transformers has no windows, and vLLM one in every second layer.
  for (const char* key : {"head_dim", "num_key_value_heads", "layer_types"}) config.at(key);
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.norm_plus_one = true;
  out.block.qk_norm = QkNorm::per_head;
  out.block.attention_gate = AttentionGate::sigmoid_of_heads;
  if (const auto scalar = config.find("query_pre_attn_scalar")) {
    out.block.attention_scale = 1 / std::sqrt(positive_number(*scalar));
  }
  set_limits(config, "swiglu_limits", &LayerSwiglu::routed, out);
  set_limits(config, "swiglu_limits_shared", &LayerSwiglu::dense, out);
  parse_step_experts(config, out);
}

TensorRows step_with_experts(const TensorRows& experts) {
  return joined({opening(),
                 qkv(),
                 {{"model.layers.{}.self_attn.g_proj", {attn_gate}}},
                 qk_norms(),
                 attention_out(),
                 next_norm(),
                 gated_mlp(),
                 {{"model.layers.{}.moe.gate", {router}},
                  {.name = "model.layers.{}.moe.router_bias", .roles = {choice_bias}}},
                 experts,
                 {{"model.layers.{}.share_expert.gate_proj", {shared_gate}},
                  {"model.layers.{}.share_expert.up_proj", {shared_up}},
                  {"model.layers.{}.share_expert.down_proj", {shared_down}}},
                 ending()});
}

// One tensor holds a matrix of all experts.
std::span<const TensorRow> step_tensors() {
  static const TensorRows rows =
      step_with_experts({{"model.layers.{}.moe.gate_proj", {expert_gate}},
                         {"model.layers.{}.moe.up_proj", {expert_up}},
                         {"model.layers.{}.moe.down_proj", {expert_down}}});
  return rows;
}

// The tensors of quantised files: one set for each expert.
std::span<const TensorRow> step_tensors_apart() {
  static const TensorRows rows =
      step_with_experts({{"model.layers.{}.moe.experts.{e}.gate_proj", {expert_gate}},
                         {"model.layers.{}.moe.experts.{e}.up_proj", {expert_up}},
                         {"model.layers.{}.moe.experts.{e}.down_proj", {expert_down}}});
  return rows;
}

Architecture step(std::string name, std::string model_type, std::string summary) {
  return {.name = std::move(name),
          .model_type = std::move(model_type),
          .summary = std::move(summary),
          .windows = true,
          .parse = parse_step,
          .tensors = step_tensors(),
          .other_tensors = step_tensors_apart(),
          .activations = kSilu,
          .rope = {.reads_part = true, .by_layer_type = true}};
}

}  // namespace

Architecture step3p5() {
  return step("Step3p5ForCausalLM", "step3p5", "Step 3.5 Flash");
}

Architecture step3p7() {
  Architecture row = step("Step3p7ForConditionalGeneration", "step3p7", "Step 3.7 Flash");
  row.inner_types = kStepInside;
  return row;
}

}  // namespace fp8kv
