// Jais 2: Llama with layer norms and biases everywhere, and a feed-forward part without a gate.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr NamedActivation kSquare[] = {{"relu2", Activation::relu_squared}};

void parse_jais2(const Json& config, ModelConfig& out) {
  out.block.norm = NormKind::layer;
  out.block.norm_bias = true;
  out.block.gated = false;
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", true);
  out.mlp_bias = config.get_bool("mlp_bias", true);
}

std::span<const TensorRow> jais2_tensors() {
  static const TensorRows rows =
      joined({opening(), qkv(), attention_out(), next_norm(), ungated_mlp(), ending()});
  return rows;
}

}  // namespace

Architecture jais2() {
  return {.name = "Jais2ForCausalLM",
          .model_type = "jais2",
          .summary = "Jais 2",
          .parse = parse_jais2,
          .tensors = jais2_tensors(),
          .activations = kSquare,
          .norm_eps = "layer_norm_eps"};
}

}  // namespace fp8kv
