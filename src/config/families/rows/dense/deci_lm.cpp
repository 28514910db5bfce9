// Nemotron by architecture search (DeciLM): Llama 3 whose layers have KV heads and a feed-forward
// width of their own, or lack attention or the feed-forward part.
#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/describe/block_configs.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

void parse_deci_lm(const Json& config, ModelConfig& out) {
  if (!has_block_configs(config)) config.at("block_configs");
  const std::string positions = config.get_string("position_embedding_type", "rope");
  if (positions == "mistral_yarn" || positions == "rope_llama4") {
    fail(config.at("position_embedding_type").where(), ": is ", quote(positions),
         ", expected 'rope': no other rotation of this architecture is supported");
  }
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.mlp_bias = config.get_bool("mlp_bias", false);
  out.hidden_dim = 0;
  for (const BlockShape& block : block_shapes(config, out)) {
    // Layers without the part have no matrix of this width.
    out.hidden_dims.push_back(std::max<int64_t>(block.hidden_dim, 1));
    out.hidden_dim = std::max(out.hidden_dim, block.hidden_dim);
  }
}

std::span<const TensorRow> deci_lm_tensors() {
  static const TensorRows rows =
      joined({opening(), qkv(), attention_out(), next_norm(), gated_mlp(), ending()});
  return rows;
}

}  // namespace

Architecture deci_lm() {
  return {.name = "DeciLMForCausalLM",
          .model_type = "nemotron-nas",
          .summary = "Llama Nemotron 51B, Super and Ultra",
          .blocks = true,
          .own_kv_heads = true,
          .parse = parse_deci_lm,
          .tensors = deci_lm_tensors(),
          .activations = kSilu,
          .hidden_dims = 1};
}

}  // namespace fp8kv
