// OLMo 1: Llama with layer norms that have no weights.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

void parse_olmo(const Json& config, ModelConfig& out) {
  if (const auto clip = config.find("clip_qkv")) {
    fail(clip->where(), ": is ", clip->brief(),
         ", expected null: clipping of Q, K and V is not supported");
  }
  out.block.norm = NormKind::layer;
  out.bare_norms = true;
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
}

std::span<const TensorRow> olmo_tensors() {
  static const TensorRows rows = joined({{{"model.embed_tokens", {TensorRole::embedding}}},
                                         qkv(),
                                         attention_out(),
                                         gated_mlp(),
                                         {{"lm_head", {TensorRole::lm_head}}}});
  return rows;
}

}  // namespace

Architecture olmo() {
  return {.name = "OlmoForCausalLM",
          .model_type = "olmo",
          .summary = "OLMo 1",
          .parse = parse_olmo,
          .tensors = olmo_tensors(),
          .activations = kSilu,
          .norm_eps = nullptr};
}

}  // namespace fp8kv
