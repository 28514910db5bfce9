// Granite with windows in three of four layers, a score of its own for each head in the softmax,
// and a rotation by layer. With experts too.
#include <algorithm>

#include "base/error.h"
#include "config/families/families.h"
#include "config/families/groups/expert_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

TensorRows attention_with_sinks() {
  return joined({opening(),
                 qkv(),
                 {{.name = "model.layers.{}.self_attn.sinks", .roles = {sinks}, .bare = true}},
                 attention_out(),
                 next_norm()});
}

std::span<const TensorRow> granite_swa_tensors() {
  static const TensorRows rows = joined({attention_with_sinks(), gated_mlp(), ending()});
  return rows;
}

std::span<const TensorRow> granite_moe_swa_tensors() {
  static const TensorRows rows =
      joined({attention_with_sinks(),
              {{"model.layers.{}.block_sparse_moe.router", {router}},
               {.name = "model.layers.{}.block_sparse_moe.experts.gate_up_proj",
                .roles = {expert_gate, expert_up},
                .bare = true},
               {.name = "model.layers.{}.block_sparse_moe.experts.down_proj",
                .roles = {expert_down},
                .bare = true},
               {"model.layers.{}.shared_mlp.input_linear", {shared_gate, shared_up}},
               {"model.layers.{}.shared_mlp.output_linear", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> granite_moe_swa_tensors_apart() {
  static const TensorRows rows = with_experts(granite_moe_swa_tensors(), granite_experts_apart());
  return rows;
}

// layer_rope_theta has the base of each layer; 0 means that the layer does not rotate.
void set_layer_thetas(const Json& config, ModelConfig& out) {
  const auto listed = config.find("layer_rope_theta");
  if (!listed) return;
  if (!listed->is_array() || listed->size() != out.layers.size()) {
    fail(listed->where(), ": is ", listed->brief(), ", expected a base for each of ",
         count_of(out.layers.size(), "layer"));
  }
  const RopeConfig first = out.ropes[0];
  out.ropes.clear();
  for (size_t i = 0; i < listed->size(); ++i) {
    const double theta = (*listed)[i].as_double();
    if (theta == 0) {
      out.layer_ropes[i] = -1;
      continue;
    }
    if (!(theta > 0)) fail((*listed)[i].where(), ": is ", theta, ", expected 0 or more");
    const auto same = [&](const RopeConfig& rope) { return rope.theta == theta; };
    auto rope = std::find_if(out.ropes.begin(), out.ropes.end(), same);
    if (rope == out.ropes.end()) {
      rope = out.ropes.insert(out.ropes.end(), first);
      rope->theta = theta;
    }
    out.layer_ropes[i] = static_cast<int32_t>(rope - out.ropes.begin());
  }
}

void parse_granite_swa(const Json& config, ModelConfig& out) {
  parse_granite(config, out);
  out.block.sinks = true;
  set_layer_thetas(config, out);
}

void parse_granite_moe_swa(const Json& config, ModelConfig& out) {
  parse_granite_moe(config, out);
  const auto shared = config.find("shared_intermediate_size");
  if (out.experts && shared) out.experts->shared_hidden_dim = in_range(*shared, 0, kLargestDim);
  out.block.sinks = true;
  set_layer_thetas(config, out);
}

}  // namespace

Architecture granite_swa() {
  return {.name = "GraniteSWAForCausalLM",
          .model_type = "granite_swa",
          .summary = "Granite with windows, dense",
          .windows = true,
          .parse = parse_granite_swa,
          .tensors = granite_swa_tensors(),
          .activations = kSilu,
          .tied = true};
}

Architecture granite_moe_swa() {
  return {.name = "GraniteMoeSWAForCausalLM",
          .model_type = "granitemoe_swa",
          .summary = "Granite with windows and experts",
          .windows = true,
          .parse = parse_granite_moe_swa,
          .tensors = granite_moe_swa_tensors(),
          .other_tensors = granite_moe_swa_tensors_apart(),
          .activations = kSilu};
}

}  // namespace fp8kv
