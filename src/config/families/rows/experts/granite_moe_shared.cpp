// Granite 4 Tiny preview: Granite with experts and one more that takes every token.
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

std::span<const TensorRow> granite_moe_shared_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              next_norm(),
              {{"model.layers.{}.block_sparse_moe.router.layer", {router}},
               {"model.layers.{}.block_sparse_moe.input_linear", {expert_gate, expert_up}},
               {"model.layers.{}.block_sparse_moe.output_linear", {expert_down}},
               {"model.layers.{}.shared_mlp.input_linear", {shared_gate, shared_up}},
               {"model.layers.{}.shared_mlp.output_linear", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> granite_moe_shared_tensors_apart() {
  static const TensorRows rows =
      with_experts(granite_moe_shared_tensors(), granite_experts_apart());
  return rows;
}

void parse_granite_moe_shared(const Json& config, ModelConfig& out) {
  parse_granite_moe(config, out);
  const auto shared = config.find("shared_intermediate_size");
  if (out.experts && shared) out.experts->shared_hidden_dim = in_range(*shared, 0, kLargestDim);
}

}  // namespace

Architecture granite_moe_shared() {
  return {.name = "GraniteMoeSharedForCausalLM",
          .model_type = "granitemoeshared",
          .summary = "Granite with experts and a shared one",
          .parse = parse_granite_moe_shared,
          .tensors = granite_moe_shared_tensors(),
          .other_tensors = granite_moe_shared_tensors_apart(),
          .activations = kSilu};
}

}  // namespace fp8kv
