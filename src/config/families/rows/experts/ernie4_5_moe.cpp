// ERNIE 4.5 with experts: attention of the dense model, and a softmax router with a bias of the
// choice.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/ernie.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// The sum of the chosen weights counts as this number where it is smaller. It is never that small.
void check_least_sum(const Json& config) {
  const auto least = config.find("moe_norm_min");
  if (!least || positive_number(*least) <= 1e-6) return;
  fail(least->where(), ": is ", least->brief(),
       ", expected at most 1e-6: a larger one would change weights, which is not supported");
}

std::span<const TensorRow> ernie4_5_moe_tensors_together() {
  static const TensorRows rows = with_experts(ernie4_5_moe_tensors(), experts_together());
  return rows;
}

}  // namespace

void parse_ernie4_5_moe(const Json& config, ModelConfig& out) {
  refuse_if_set(config, "use_bias", "a bias beside experts");
  check_least_sum(config);
  check_same(config.find("moe_k"), config.find("num_experts_per_tok"));
  parse_experts(config, {{"moe_num_experts", "num_experts"}, "moe_intermediate_size", "moe_k"},
                out);
  if (!out.experts) config.at("moe_num_experts");
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  experts.routing.normalise = true;
  experts.choice_bias = true;
  const auto shared = config.find("moe_num_shared_experts");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 0, kLargestDim / experts.hidden_dim) : 2);
}

std::span<const TensorRow> ernie4_5_moe_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}},
               {.name = "model.layers.{}.mlp.moe_statics.e_score_correction_bias",
                .roles = {choice_bias},
                .form = VectorForm::one_row}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}},
              ending()});
  return rows;
}

Architecture ernie4_5_moe() {
  return {.name = "Ernie4_5_MoeForCausalLM",
          .model_type = "ernie4_5_moe",
          .summary = "ERNIE 4.5 with experts",
          .parse = parse_ernie4_5_moe,
          .tensors = ernie4_5_moe_tensors(),
          .other_tensors = ernie4_5_moe_tensors_together(),
          .activations = kSilu,
          .tied = true,
          .rope = {.theta = 500000.0, .pairs = RopePairs::neighbours}};
}

}  // namespace fp8kv
