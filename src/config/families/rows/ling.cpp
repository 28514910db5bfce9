#include "config/families/rows/ling.h"

#include <optional>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Throws if a switch is off that the published code does not read.
void check_always_on(const Json& config, const char* key, const char* what) {
  if (is_on(config, key)) return;
  fail(config.at(key).where(), ": is false, expected true: the published code ", what,
       " whatever this says");
}

}  // namespace

void check_taken(const Json& config, const char* key, double taken, const char* why) {
  const auto found = config.find(key);
  if (!found || found->as_double() == taken) return;
  fail(found->where(), ": is ", found->brief(), ", expected ", taken, ": ", why);
}

void check_rotated(const Json& config, const ModelConfig& out) {
  constexpr const char* kWhole = "runtimes rotate qk_rope_head_dim elements whatever this says";
  const auto rope_dim = static_cast<double>(out.latent->rope_dim);
  check_taken(config, "rotary_dim", rope_dim, kWhole);
  const auto check_part = [&](const std::optional<Json>& holder) {
    const auto part = holder ? holder->find("partial_rotary_factor") : std::nullopt;
    if (!part || part->as_double() * config.at("head_dim").as_double() == rope_dim) return;
    fail(part->where(), ": is ", part->brief(), ", which times head_dim is not ",
         out.latent->rope_dim, ": ", kWhole);
  };
  check_part(config);
  for (const char* key : {"rope_parameters", "rope_scaling"}) check_part(config.find(key));
}

void parse_ling2_experts(const Json& config, ModelConfig& out) {
  check_router_says(config, "score_function", "sigmoid");
  check_router_says(config, "scoring_func", "sigmoid");
  check_router_says(config, "topk_method", "noaux_tc");
  check_always_on(config, "moe_router_enable_expert_bias", "adds the bias of the choice");
  check_always_on(config, "norm_topk_prob", "divides the weights of experts by their sum");
  // The first is of weights in vLLM, and the others are for training.
  for (const char* key : {"router_dtype", "mtp_loss_scaling_factor", "output_dropout"}) {
    config.find(key);
  }
  config.at("first_k_dense_replace");
  check_first_dense(config, out);
  parse_experts(config, {{"num_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  constexpr const char* kShared = "num_shared_experts";
  config.find(kShared);
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  Routing& routing = experts.routing;
  if (routing.per_token == 1) {
    fail(config.at("num_experts_per_tok").where(),
         ": is 1, expected 2 or more: runtimes differ in ",
         "whether they divide the weight of a single expert by itself");
  }
  for (const char* key : {"n_group", "topk_group"}) config.at(key);
  parse_expert_groups(config, out);
  experts.choice_bias = true;
  routing.score = RouterScore::sigmoid;
  routing.normalise = true;
  routing.epsilon = 1e-20;
  routing.scale = positive_or(config, "routed_scaling_factor", 1.0);
  const bool said = mentions(config, kShared);  // null means none in the published code
  const int64_t most = kLargestDim / experts.hidden_dim;
  experts.shared_hidden_dim = experts.hidden_dim * (said ? in_range(config.at(kShared), most) : 1);
  check_taken(config, "moe_shared_expert_intermediate_size",
              static_cast<double>(experts.hidden_dim),
              "the published code makes a shared expert as wide as the others");
}

TensorRow ling_row(const char* name, TensorRole role) {
  return {.name = name, .roles = {role}};
}

TensorRows ling_attention(bool q_in_two) {
  const TensorRows q_rows = {ling_row("model.layers.{}.attention.q_a_proj", q_down),
                             ling_row("model.layers.{}.attention.q_a_layernorm", q_down_norm),
                             ling_row("model.layers.{}.attention.q_b_proj", q)};
  return joined({q_in_two ? q_rows : TensorRows{ling_row("model.layers.{}.attention.q_proj", q)},
                 {{"model.layers.{}.attention.kv_a_proj_with_mqa", {latent, k_rope}},
                  ling_row("model.layers.{}.attention.kv_a_layernorm", latent_norm),
                  {"model.layers.{}.attention.kv_b_proj", {k_up, v_up}, TensorLayout::by_head},
                  ling_row("model.layers.{}.attention.dense", o)}});
}

TensorRows ling_feed_forward() {
  return joined({next_norm(),
                 gated_mlp(),
                 {ling_row("model.layers.{}.mlp.gate", router),
                  ling_row("model.layers.{}.mlp.gate.expert_bias", choice_bias)},
                 experts_apart(),
                 {ling_row("model.layers.{}.mlp.shared_experts.gate_proj", shared_gate),
                  ling_row("model.layers.{}.mlp.shared_experts.up_proj", shared_up),
                  ling_row("model.layers.{}.mlp.shared_experts.down_proj", shared_down)},
                 ending()});
}

}  // namespace fp8kv
