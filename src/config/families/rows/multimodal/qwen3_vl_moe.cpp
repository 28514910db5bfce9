// Qwen3-VL with experts: Qwen 3 with experts, whose weights always add up to 1. Published files
// hold the experts of a layer transposed. transformers 5 saves new models without that.
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kQwen3VlMoeInside[] = {"qwen3_vl_moe_text"};

std::span<const TensorRow> qwen3_vl_moe_tensors() {
  static const TensorRows rows = with_experts(qwen_moe_tensors(), experts_together());
  return rows;
}

std::span<const TensorRow> qwen3_vl_moe_tensors_turned() {
  static const TensorRows rows =
      with_experts(qwen_moe_tensors(), {{.name = "model.layers.{}.mlp.experts.gate_up_proj",
                                         .roles = {expert_gate, expert_up},
                                         .layout = TensorLayout::transposed,
                                         .bare = true},
                                        {.name = "model.layers.{}.mlp.experts.down_proj",
                                         .roles = {expert_down},
                                         .layout = TensorLayout::transposed,
                                         .bare = true}});
  return rows;
}

// The tensors of quantised files: one set for each expert.
std::span<const TensorRow> qwen3_vl_moe_tensors_apart() {
  static const TensorRows rows = with_experts(qwen3_vl_moe_tensors(), experts_apart());
  return rows;
}

void parse_qwen3_vl_moe(const Json& config, ModelConfig& out) {
  parse_qwen3_moe(config, out);
  if (out.experts) out.experts->routing.normalise = true;
}

}  // namespace

Architecture qwen3_vl_moe() {
  return {.name = "Qwen3VLMoeForConditionalGeneration",
          .model_type = "qwen3_vl_moe",
          .summary = "Qwen3-VL with experts",
          .parse = parse_qwen3_vl_moe,
          .tensors = qwen3_vl_moe_tensors(),
          .other_tensors = qwen3_vl_moe_tensors_apart(),
          .turned_tensors = qwen3_vl_moe_tensors_turned(),
          .activations = kSilu,
          .rope = {.theta = 500000.0, .older_theta = 5e6},
          .inner_types = kQwen3VlMoeInside};
}

}  // namespace fp8kv
