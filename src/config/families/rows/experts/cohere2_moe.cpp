// Command A with experts: Cohere 2, whose feed-forward part is experts beside attention.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void parse_router(const Json& config, ExpertsConfig& experts) {
  const std::string score = config.get_string("expert_selection_fn", "softmax");
  if (score == "softmax") {
    experts.routing.score = RouterScore::softmax_of_chosen;
    config.find("norm_topk_prob");
    return;
  }
  check_router_says(config, "expert_selection_fn", "sigmoid");
  experts.routing.score = RouterScore::sigmoid;
  experts.routing.normalise = is_on(config, "norm_topk_prob");
}

void parse_shared(const Json& config, ExpertsConfig& experts) {
  const auto shared = config.find("num_shared_experts");
  const auto together = config.find("shared_expert_combination_strategy");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 0, kLargestDim / experts.hidden_dim) : 0);
  if (experts.shared_hidden_dim == 0) return;
  if (!together || together->as_string() == "average") {
    experts.multiplier = 0.5;
  } else {
    check_router_says(config, "shared_expert_combination_strategy", "sum");
  }
}

// Dense layers come first. They rotate even where they have no window, unless a pattern of windows
// says otherwise.
void set_dense_layers(const Json& config, ModelConfig& out) {
  const auto width = config.find("prefix_dense_intermediate_size");
  const auto pattern = config.find("prefix_dense_sliding_window_pattern");
  const bool rotates = !pattern || pattern->as_int() == 1;
  if (width) out.hidden_dim = in_range(*width, kLargestDim);
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    if (rotates && !out.has_experts(i)) out.layer_ropes[static_cast<size_t>(i)] = 0;
  }
}

void parse_cohere2_moe(const Json& config, ModelConfig& out) {
  if (const auto scaling = config.find("rope_scaling")) {
    fail(scaling->where(), ": is ", scaling->brief(),
         ", expected null: transformers ignores it here. Write rope_parameters");
  }
  config.at("layer_types");  // without it, dense layers have a pattern of their own
  parse_cohere2(config, out);
  if (const auto eps = config.find("rms_norm_eps")) {
    out.block.norm = NormKind::rms;
    out.norm_eps = positive_number(*eps);
  }
  parse_experts(config, {{"num_experts", "num_local_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (!out.experts) return;
  parse_router(config, *out.experts);
  parse_shared(config, *out.experts);
  set_dense_layers(config, out);
}

std::span<const TensorRow> cohere2_moe_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> cohere2_moe_tensors_together() {
  static const TensorRows rows = with_experts(cohere2_moe_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture cohere2_moe() {
  return {.name = "Cohere2MoeForCausalLM",
          .model_type = "cohere2_moe",
          .summary = "Command A with experts",
          .windows = true,
          .parse = parse_cohere2_moe,
          .tensors = cohere2_moe_tensors(),
          .other_tensors = cohere2_moe_tensors_together(),
          .activations = kSilu,
          .norm_eps = "layer_norm_eps",
          .tied = true,
          .rope = {.pairs = RopePairs::neighbours}};
}

}  // namespace fp8kv
