// GLM-4.1V, 4.5V and 4.6V: the language models are GLM-4 and GLM-4.5 with defaults of their own.
#include "config/families/families.h"
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

constexpr std::string_view kGlm4vInside[] = {"glm4v_text"};
constexpr std::string_view kGlm4vMoeInside[] = {"glm4v_moe_text"};

// Versions of transformers rotate different parts of a head if the config does not give the part.
void require_rotated_part(const Json& config) {
  const auto rope = config.find("rope_parameters");
  if (rope && rope->is_object() && rope->has("partial_rotary_factor")) return;
  config.at("partial_rotary_factor");
}

void parse_glm4v(const Json& config, ModelConfig& out) {
  require_rotated_part(config);
  config.find("attention_bias");  // the model has the biases whatever it is
  out.qkv_bias = true;
  out.block.norm_place = NormPlace::around;
}

void parse_glm4v_moe(const Json& config, ModelConfig& out) {
  require_rotated_part(config);
  parse_glm4_moe(config, out);
  out.qkv_bias = config.get_bool("attention_bias", true);
}

}  // namespace

Architecture glm4v() {
  return {.name = "Glm4vForConditionalGeneration",
          .model_type = "glm4v",
          .summary = "GLM-4.1V, GLM-4.6V Flash",
          .parse = parse_glm4v,
          .tensors = glm4_tensors(),
          .activations = kSilu,
          .rope = {.reads_part = true, .pairs = RopePairs::neighbours},
          .inner_types = kGlm4vInside};
}

Architecture glm4v_moe() {
  return {.name = "Glm4vMoeForConditionalGeneration",
          .model_type = "glm4v_moe",
          .summary = "GLM-4.5V, GLM-4.6V",
          .parse = parse_glm4v_moe,
          .tensors = glm4_moe_tensors(),
          .other_tensors = glm4_moe_tensors_together(),
          .activations = kSilu,
          .rope = {.reads_part = true},
          .inner_types = kGlm4vMoeInside};
}

}  // namespace fp8kv
