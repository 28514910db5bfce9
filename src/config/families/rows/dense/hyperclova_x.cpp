// HyperCLOVA X: Granite with a norm behind each block too. logits_scaling multiplies here, and
// divides in Granite.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

std::span<const TensorRow> hyperclova_x_tensors() {
  static const TensorRows rows = joined({opening(),
                                         qkv(),
                                         attention_out(),
                                         {{"model.layers.{}.post_norm1", {attn_post_norm}}},
                                         next_norm(),
                                         gated_mlp(),
                                         {{"model.layers.{}.post_norm2", {ffn_post_norm}}},
                                         ending()});
  return rows;
}

void parse_hyperclova_x(const Json& config, ModelConfig& out) {
  parse_llama(config, out);
  BlockConfig& block = out.block;
  if (config.get_bool("use_post_norm", true)) block.norm_place = NormPlace::around;
  block.embed_multiplier = positive_or(config, "embedding_multiplier", 1.0);
  block.residual_multiplier = positive_or(config, "residual_multiplier", 1.0);
  block.attention_scale = positive_or(config, "attention_multiplier", 0.0);
  block.logit_multiplier = positive_or(config, "logits_scaling", 1.0);
}

}  // namespace

Architecture hyperclova_x() {
  return {.name = "HyperCLOVAXForCausalLM",
          .model_type = "hyperclovax",
          .summary = "HyperCLOVA X SEED",
          .parse = parse_hyperclova_x,
          .tensors = hyperclova_x_tensors(),
          .activations = kSilu};
}

}  // namespace fp8kv
