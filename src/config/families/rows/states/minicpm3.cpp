// MiniCPM 3: latent attention with the multipliers of MiniCPM, and no experts.
#include <cmath>

#include "base/error.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// Transformers rotates by the halves of the rotated part, and multiplies scores by yarn's factor.
void parse_minicpm3(const Json& config, ModelConfig& out) {
  parse_latent(config, out, out.dim / out.n_heads);
  out.mlp_bias = config.get_bool("mlp_bias", false);
  BlockConfig& block = out.block;
  block.embed_multiplier = positive_number(config.at("scale_emb"));
  block.residual_multiplier =
      positive_number(config.at("scale_depth")) / std::sqrt(static_cast<double>(out.n_layers()));
  block.logit_multiplier =
      positive_number(config.at("dim_model_base")) / static_cast<double>(out.dim);
}

}  // namespace

Architecture minicpm3() {
  return {.name = "MiniCPM3ForCausalLM",
          .model_type = "minicpm3",
          .summary = "MiniCPM 3",
          .parse = parse_minicpm3,
          .tensors = latent_q_tensors(),
          .activations = kSilu,
          .tied = true,
          .rope = {.reads_mscale = true}};
}

}  // namespace fp8kv
