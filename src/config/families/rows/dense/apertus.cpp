// Apertus: Llama with norms of Q and K, and xIELU in place of a gate.
#include "base/error.h"
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// xIELU is BlockConfig::xielu; blocks with it ignore BlockConfig::activation.
constexpr NamedActivation kXielu[] = {{"xielu", Activation::silu}};

void parse_apertus(const Json& config, ModelConfig& out) {
  // Versions of transformers differ in the rope of configs without one.
  if (!config.has("rope_scaling")) config.at("rope_parameters");
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  out.block.gated = false;
  out.block.xielu = true;
  refuse_if_set(config, "mlp_bias", "a bias in the feed-forward part of this architecture");
  refuse_if_set(config, "post_norm", "a norm behind blocks in this architecture");
  if (!is_on(config, "qk_norm")) {
    fail(config.at("qk_norm").where(),
         ": is false: this architecture has norms of Q and K in every layer");
  }
}

std::span<const TensorRow> apertus_tensors() {
  static const TensorRows rows = joined(
      {{{"model.embed_tokens", {embedding}}, {"model.layers.{}.attention_layernorm", {attn_norm}}},
       qkv(),
       qk_norms(),
       attention_out(),
       {{"model.layers.{}.feedforward_layernorm", {ffn_norm}}},
       ungated_mlp(),
       {{"model.layers.{}.mlp.act_fn.alpha_p", {xielu_positive}, TensorLayout::rows, true},
        {"model.layers.{}.mlp.act_fn.alpha_n", {xielu_negative}, TensorLayout::rows, true},
        {"model.layers.{}.mlp.act_fn.beta", {xielu_beta}, TensorLayout::rows, true},
        {"model.layers.{}.mlp.act_fn.eps", {xielu_eps}, TensorLayout::rows, true}},
       ending()});
  return rows;
}

}  // namespace

Architecture apertus() {
  return {.name = "ApertusForCausalLM",
          .model_type = "apertus",
          .summary = "Apertus",
          .parse = parse_apertus,
          .tensors = apertus_tensors(),
          .activations = kXielu,
          .context = 65536,
          .rope = {.theta = 1.2e7}};
}

}  // namespace fp8kv
