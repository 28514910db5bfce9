// FlexOlmo: OLMoE with the norms of OLMo 2 behind its blocks.
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

using enum TensorRole;

std::span<const TensorRow> flex_olmo_tensors() {
  static const TensorRows rows =
      joined({{{"model.embed_tokens", {embedding}}},
              qkv(),
              qk_norms(),
              attention_out(),
              {{"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
               {"model.layers.{}.mlp.gate", {router}}},
              experts_apart(),
              {{"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

std::span<const TensorRow> flex_olmo_tensors_together() {
  static const TensorRows rows = with_experts(flex_olmo_tensors(), experts_together());
  return rows;
}

void parse_flex_olmo(const Json& config, ModelConfig& out) {
  parse_olmoe(config, out);
  out.block.norm_place = NormPlace::after;
}

}  // namespace

Architecture flex_olmo() {
  return {.name = "FlexOlmoForCausalLM",
          .model_type = "flex_olmo",
          .summary = "FlexOlmo",
          .parse = parse_flex_olmo,
          .tensors = flex_olmo_tensors(),
          .other_tensors = flex_olmo_tensors_together(),
          .activations = kSilu,
          .rope = {.theta = 500000.0}};
}

}  // namespace fp8kv
