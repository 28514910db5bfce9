// dots.llm1: attention of Qwen 3, experts and router of DeepSeek V3.
#include "config/families/experts_config.h"
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"

namespace fp8kv {
namespace {

void parse_dots1(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  // Published configs name the score after how experts are chosen.
  if (config.get_string("scoring_func", "") != "noaux_tc") {
    check_router_says(config, "scoring_func", "sigmoid");
  }
  parse_glm4_experts(config, out);
}

}  // namespace

Architecture dots1() {
  return {.name = "Dots1ForCausalLM",
          .model_type = "dots1",
          .summary = "dots.llm1",
          .windows = true,
          .parse = parse_dots1,
          .tensors = glm4_moe_tensors(),
          .other_tensors = glm4_moe_tensors_together(),
          .activations = kSilu};
}

}  // namespace fp8kv
