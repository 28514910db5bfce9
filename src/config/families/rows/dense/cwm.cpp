// Code World Model: Llama where three of four layers have a window.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

void parse_cwm(const Json& config, ModelConfig& out) {
  out.mlp_bias = config.get_bool("mlp_bias", false);
  // transformers would stretch the rope by 16 where the config says nothing.
  if (!config.has("rope_scaling")) config.at("rope_parameters");
}

}  // namespace

Architecture cwm() {
  return {.name = "CwmForCausalLM",
          .model_type = "cwm",
          .summary = "Code World Model",
          .windows = true,
          .parse = parse_cwm,
          .tensors = llama_tensors(),
          .activations = kSilu,
          .rope = {.theta = 1e6}};
}

}  // namespace fp8kv
