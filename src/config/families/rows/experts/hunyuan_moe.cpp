// HunYuan with experts: attention of the dense models, a softmax router, and a shared expert of the
// size of the others, in every layer.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/hunyuan.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Throws unless the key is missing, false or 1. Published configs have false for groups of experts.
void refuse_groups(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (!found || (found->is_number() ? found->as_double() == 1 : !found->as_bool())) return;
  fail(found->where(), ": is ", found->brief(),
       ", expected false or 1: groups and factors of experts are not supported here");
}

// vLLM reads these numbers, and transformers takes them for granted.
void check_number(const Json& config, const char* key, int64_t expected, size_t n_layers) {
  const auto found = config.find(key);
  if (!found) return;
  const Json number = for_all_layers(*found, n_layers);
  if (number.as_int() == expected) return;
  fail(number.where(), ": is ", number.brief(), ", expected ", expected,
       ", which transformers takes for it");
}

void parse_hunyuan_moe(const Json& config, ModelConfig& out) {
  parse_hunyuan_attention(config, out);
  parse_experts(config, {{"num_experts"}, "intermediate_size", "moe_topk"}, out);
  if (!out.experts) config.at("num_experts");
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  experts.routing.normalise = true;
  experts.shared_hidden_dim = experts.hidden_dim;
  for (const char* key : {"n_group", "topk_group", "routed_scaling_factor"}) {
    refuse_groups(config, key);
  }
  for (const char* key : {"norm_topk_prob", "use_mixed_mlp_moe"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(),
         ": is false, expected true: a HunYuan without it is not supported");
  }
  refuse_if_set(config, "group_limited_greedy", "choosing experts by groups");
  check_number(config, "moe_intermediate_size", experts.hidden_dim, out.layers.size());
  check_number(config, "num_shared_expert", 1, out.layers.size());
  check_number(config, "moe_layer_num_skipped", 0, out.layers.size());
}

std::span<const TensorRow> hunyuan_moe_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              hunyuan_norms(),
              attention_out(),
              next_norm(),
              {{"model.layers.{}.mlp.gate.wg", {router}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_mlp.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_mlp.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_mlp.down_proj", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> hunyuan_moe_tensors_together() {
  static const TensorRows rows = with_experts(hunyuan_moe_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture hunyuan_moe() {
  return {.name = "HunYuanMoEV1ForCausalLM",
          .model_type = "hunyuan_v1_moe",
          .summary = "HunYuan A13B",
          .parse = parse_hunyuan_moe,
          .tensors = hunyuan_moe_tensors(),
          .other_tensors = hunyuan_moe_tensors_together(),
          .activations = kSilu,
          .rope = {.reads_alpha = true}};
}

}  // namespace fp8kv
