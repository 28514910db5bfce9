// Nemotron 3 and 4, Minitron: layer norms that store their weight less 1, relu squared without a
// gate, half of each head rotated.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

constexpr NamedActivation kNemotronActivations[] = {{"relu2", Activation::relu_squared}};

std::span<const TensorRow> nemotron_tensors() {
  static const TensorRows rows =
      joined({opening(), qkv(), attention_out(), next_norm(), ungated_mlp(), ending()});
  return rows;
}

void parse_nemotron(const Json& config, ModelConfig& out) {
  parse_llama(config, out);
  BlockConfig& block = out.block;
  block.gated = false;
  block.norm = NormKind::layer;
  block.norm_bias = block.norm_plus_one = true;
}

}  // namespace

Architecture nemotron() {
  return {.name = "NemotronForCausalLM",
          .model_type = "nemotron",
          .summary = "Nemotron 3 and 4, Minitron",
          .parse = parse_nemotron,
          .tensors = nemotron_tensors(),
          .activations = kNemotronActivations,
          .norm_eps = "norm_eps",
          .rope = {.part = 0.5, .reads_part = true}};
}

}  // namespace fp8kv
