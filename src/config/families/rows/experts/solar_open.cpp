// Solar Open: attention of Llama, experts and router of GLM-4.5 in every layer.
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"

namespace fp8kv {

Architecture solar_open() {
  return {.name = "SolarOpenForCausalLM",
          .model_type = "solar_open",
          .summary = "Solar Open",
          .parse = parse_glm4_moe,
          .tensors = glm4_moe_tensors(),
          .other_tensors = glm4_moe_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 1e6}};
}

}  // namespace fp8kv
