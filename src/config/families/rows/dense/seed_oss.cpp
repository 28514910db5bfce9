// Seed-OSS: Llama with biases of Q, K and V, and a switch of its own for that of the output.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

void parse_seed_oss(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", true);
  out.o_bias = config.get_bool("attention_out_bias", false);
  out.mlp_bias = config.get_bool("mlp_bias", false);
}

}  // namespace

Architecture seed_oss() {
  return {.name = "SeedOssForCausalLM",
          .model_type = "seed_oss",
          .summary = "Seed-OSS",
          .parse = parse_seed_oss,
          .tensors = llama_tensors(),
          .activations = kSilu};
}

}  // namespace fp8kv
