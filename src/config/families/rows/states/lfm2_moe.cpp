// LFM2 with experts: LFM2 whose later layers have experts, with a router of sigmoids.
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/states/lfm2.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void parse_lfm2_moe(const Json& config, ModelConfig& out) {
  config.at("layer_types");
  parse_lfm2_layers(config, out);
  config.find("num_dense_layers");
  parse_experts(config, {{"num_experts"}, "moe_intermediate_size"}, out);
  const bool biased = is_on(config, "use_expert_bias");
  const bool normalised = is_on(config, "norm_topk_prob");
  const double scale = positive_or(config, "routed_scaling_factor", 1.0);
  if (!out.experts) return;
  out.experts->choice_bias = biased;
  Routing& routing = out.experts->routing;
  routing.score = RouterScore::sigmoid;
  routing.normalise = normalised;
  routing.epsilon = 1e-6;
  routing.scale = scale;
}

std::span<const TensorRow> lfm2_moe_tensors() {
  static const TensorRows rows =
      joined({lfm2_opening(),
              lfm2_mlp(),
              {{"model.layers.{}.feed_forward.gate", {router}},
               {"model.layers.{}.feed_forward.expert_bias", {choice_bias}},
               {"model.layers.{}.feed_forward.experts.{e}.w1", {expert_gate}},
               {"model.layers.{}.feed_forward.experts.{e}.w3", {expert_up}},
               {"model.layers.{}.feed_forward.experts.{e}.w2", {expert_down}}},
              lfm2_ending()});
  return rows;
}

}  // namespace

Architecture lfm2_moe() {
  return {.name = "Lfm2MoeForCausalLM",
          .model_type = "lfm2_moe",
          .summary = "LFM2 with experts",
          .states = true,
          .parse = parse_lfm2_moe,
          .tensors = lfm2_moe_tensors(),
          .activations = kSilu,
          .norm_eps = "norm_eps",
          .tied = true,
          .context = 128000,
          .rope = {.theta = 1e6}};
}

}  // namespace fp8kv
