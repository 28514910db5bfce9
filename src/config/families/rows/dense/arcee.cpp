// AFM-4.5B: Llama whose feed-forward part is down(relu(up(x)) squared), without a gate.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kArceeActivations[] = {{"relu2", Activation::relu_squared}};

std::span<const TensorRow> arcee_tensors() {
  static const TensorRows rows =
      joined({opening(), qkv(), attention_out(), next_norm(), ungated_mlp(), ending()});
  return rows;
}

void parse_arcee(const Json& config, ModelConfig& out) {
  parse_llama(config, out);
  out.block.gated = false;
}

}  // namespace

Architecture arcee() {
  return {.name = "ArceeForCausalLM",
          .model_type = "arcee",
          .summary = "Arcee AFM",
          .parse = parse_arcee,
          .tensors = arcee_tensors(),
          .activations = kArceeActivations};
}

}  // namespace fp8kv
