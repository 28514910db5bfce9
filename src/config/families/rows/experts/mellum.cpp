// Mellum 2: attention and experts of Qwen 3. Layers with a window have a rotation of their own.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

void parse_mellum(const Json& config, ModelConfig& out) {
  for (const char* key : {"rope_theta", "rope_scaling"}) {
    if (!config.has(key)) continue;
    fail(config.at(key).where(), ": is ", config.at(key).brief(),
         ", expected null: transformers ignores it here. Write rope_parameters with an object for "
         "'full_attention' and one for 'sliding_attention'");
  }
  config.at("layer_types");  // without it no layer has a window, though there is a sliding_window
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  parse_experts(config, {{"num_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (out.experts) out.experts->routing.normalise = is_on(config, "norm_topk_prob");
}

}  // namespace

Architecture mellum() {
  return {.name = "MellumForCausalLM",
          .model_type = "mellum",
          .summary = "Mellum 2",
          .windows = true,
          .parse = parse_mellum,
          .tensors = qwen_moe_tensors(),
          .other_tensors = qwen_moe_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 500000.0, .by_layer_type = true, .local_theta = 10000.0}};
}

}  // namespace fp8kv
