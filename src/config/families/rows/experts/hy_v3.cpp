// HunYuan 3: attention of Qwen 3. Experts and router of DeepSeek V3 without groups.
#include <algorithm>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Only vLLM reads these keys. Throws where they say something other than transformers takes.
void check_keys_of_vllm(const Json& config, const ModelConfig& out) {
  check_same(config.find("moe_intermediate_size"), config.find("expert_hidden_dim"));
  for (const char* key : {"qk_norm", "route_norm"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false, expected true, which transformers takes for it");
  }
  const auto dense = config.find("first_k_dense_replace");
  const auto experts = std::find_if(out.layers.begin(), out.layers.end(), [](const auto& layer) {
    return layer.feed_forward == FeedForward::experts;
  });
  const int64_t found = experts - out.layers.begin();
  if (!dense || (dense->as_int() == found && (found == 1 || config.has("mlp_layer_types")))) return;
  fail(dense->where(), ": is ", dense->brief(),
       ", which transformers ignores: list the type of each layer in mlp_layer_types");
}

void parse_hy_v3(const Json& config, ModelConfig& out) {
  refuse_if_set(config, "mlp_bias", "a bias beside experts");
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  check_keys_of_vllm(config, out);
  parse_experts(config, {{"num_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  experts.choice_bias = true;
  experts.routing.score = RouterScore::sigmoid;
  experts.routing.normalise = true;
  experts.routing.epsilon = 1e-20;
  experts.routing.scale = positive_or(config, "router_scaling_factor", 2.826);
  const auto shared = config.find("num_shared_experts");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 1, kLargestDim / experts.hidden_dim) : 1);
}

std::span<const TensorRow> hy_v3_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              qk_norms(),
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.router.gate", {router}},
               {"model.layers.{}.mlp.expert_bias", {choice_bias}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_mlp.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_mlp.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_mlp.down_proj", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> hy_v3_tensors_together() {
  static const TensorRows rows = with_experts(hy_v3_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture hy_v3() {
  return {.name = "HYV3ForCausalLM",
          .model_type = "hy_v3",
          .summary = "HunYuan 3 with experts",
          .parse = parse_hy_v3,
          .tensors = hy_v3_tensors(),
          .other_tensors = hy_v3_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 11158840.0}};
}

}  // namespace fp8kv
