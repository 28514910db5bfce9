// Qwen3-Omni with experts: its thinker, which is Qwen 3 with experts whose weights add up to 1 by
// default.
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr std::string_view kThinkerInside[] = {"qwen3_omni_moe_text"};

void parse_qwen3_omni_moe(const Json& config, ModelConfig& out) {
  parse_qwen3_moe(config, out);
  if (out.experts) out.experts->routing.normalise = is_on(config, "norm_topk_prob");
}

}  // namespace

Architecture qwen3_omni_moe() {
  return {.name = "Qwen3OmniMoeForConditionalGeneration",
          .model_type = "qwen3_omni_moe",
          .summary = "Qwen3-Omni's thinker",
          .parse = parse_qwen3_omni_moe,
          .tensors = qwen_moe_tensors(),
          .other_tensors = qwen_moe_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 1e6},
          .inner_types = kThinkerInside};
}

}  // namespace fp8kv
