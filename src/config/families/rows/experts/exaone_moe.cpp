// K-EXAONE: attention of EXAONE 4 with norms before the blocks. Experts and router of DeepSeek V3.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Only vLLM reads these lists, in models after K-EXAONE 1.
void refuse_lists(const Json& config) {
  for (const char* key : {"sliding_windows", "swiglu_limits"}) {
    if (!config.has(key)) continue;
    fail(config.at(key).where(), ": is ", config.at(key).brief(),
         ", expected null: a number of its own for each layer is not supported here");
  }
}

// Layers without a window do not rotate in a model with a window. A missing key stands for the
// family's window; null stands for none.
void set_rotations(const Json& config, ModelConfig& out) {
  if (mentions(config, "sliding_window") && !config.has("sliding_window")) return;
  bool any = false;
  for (size_t i = 0; i < out.layers.size(); ++i) {
    if (out.layers[i].mixing == Mixing::full) out.layer_ropes[i] = -1;
    if (out.layers[i].mixing == Mixing::window) any = true;
  }
  if (any) return;
  fail(config.where(), ": no layer has a window, expected 'sliding_attention' in layer_types, or ",
       "null for sliding_window: runtimes differ in whether such a model rotates");
}

void parse_exaone_moe(const Json& config, ModelConfig& out) {
  refuse_lists(config);
  out.block.qk_norm = QkNorm::per_head;
  set_rotations(config, out);
  check_router_says(config, "scoring_func", "sigmoid");
  config.find("first_k_dense_replace");  // counts only in a config without mlp_layer_types
  parse_experts(config, {{"num_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (!out.experts) return;
  parse_sigmoid_router(config, out);
  ExpertsConfig& experts = *out.experts;
  experts.routing.scale = positive_or(config, "routed_scaling_factor", 2.5);
  const auto shared = config.find("num_shared_experts");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 1, kLargestDim / experts.hidden_dim) : 1);
}

std::span<const TensorRow> exaone_moe_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              qk_norms(),
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}},
               {"model.layers.{}.mlp.e_score_correction_bias", {choice_bias}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> exaone_moe_tensors_together() {
  static const TensorRows rows = with_experts(exaone_moe_tensors(), experts_together());
  return rows;
}

Architecture k_exaone(const char* name, const char* summary) {
  return {.name = name,
          .model_type = "exaone_moe",
          .summary = summary,
          .windows = true,
          .parse = parse_exaone_moe,
          .tensors = exaone_moe_tensors(),
          .other_tensors = exaone_moe_tensors_together(),
          .activations = kSilu};
}

}  // namespace

Architecture exaone_moe() {
  return k_exaone("ExaoneMoeForCausalLM", "K-EXAONE, saved by transformers");
}

Architecture exaone_moe_first_name() {
  return k_exaone("ExaoneMoEForCausalLM", "K-EXAONE");
}

}  // namespace fp8kv
