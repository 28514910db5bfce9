// Phi-3.5-MoE: Mixtral with norms by mean and deviation, biases, and a router of its own
// (sparsemixer).
#include "base/error.h"
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

void parse_phimoe(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.norm = NormKind::layer;
  out.block.norm_bias = true;
  out.block.head_bias = config.get_bool("lm_head_bias", false);
  parse_mixtral(config, out);
  if (!out.experts) return;
  Routing& routing = out.experts->routing;
  if (routing.per_token != 2) {
    const Json chosen = config.at("num_experts_per_tok");
    fail(chosen.where(), ": is ", chosen.brief(), ", expected 2, which this router always chooses");
  }
  routing.score = RouterScore::sparse_mixer;
  routing.normalise = false;
  routing.near = 2 * config.get_double("router_jitter_noise", 0.01);
  if (!(routing.near >= 0 && routing.near < 1e6)) {
    const Json jitter = config.at("router_jitter_noise");
    fail(jitter.where(), ": is ", jitter.brief(), ", expected a number from 0 on");
  }
}

}  // namespace

Architecture phimoe() {
  return {.name = "PhimoeForCausalLM",
          .model_type = "phimoe",
          .summary = "Phi-3.5-MoE as transformers saves it",
          .windows = true,
          .parse = parse_phimoe,
          .tensors = mixtral_tensors(),
          .activations = kSilu,
          .rope = {.theta = 1e6, .reads_mscales = true}};
}

// The published files have this name.
Architecture phimoe_first_name() {
  Architecture row = phimoe();
  row.name = "PhiMoEForCausalLM";
  row.summary = "Phi-3.5-MoE";
  return row;
}

}  // namespace fp8kv
