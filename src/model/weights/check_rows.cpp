#include "model/weights/check_rows.h"

#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/families/tensor_table.h"

namespace fp8kv {
namespace {

struct NamedRole {
  TensorRole role;
  const char* name;
};

// All roles, in the order of TensorRole.
constexpr std::array<NamedRole, 75> kRoles = {{
    {TensorRole::embedding, "embedding"},
    {TensorRole::embed_up, "embed_up"},
    {TensorRole::positions, "positions"},
    {TensorRole::layer_embedding, "layer_embedding"},
    {TensorRole::layer_projection, "layer_projection"},
    {TensorRole::layer_projection_norm, "layer_projection_norm"},
    {TensorRole::stream_in, "stream_in"},
    {TensorRole::attn_norm, "attn_norm"},
    {TensorRole::stream_norm, "stream_norm"},
    {TensorRole::stream_router, "stream_router"},
    {TensorRole::stream_predict, "stream_predict"},
    {TensorRole::q, "q"},
    {TensorRole::k, "k"},
    {TensorRole::v, "v"},
    {TensorRole::attn_gate, "attn_gate"},
    {TensorRole::q_down, "q_down"},
    {TensorRole::q_down_norm, "q_down_norm"},
    {TensorRole::latent, "latent"},
    {TensorRole::k_rope, "k_rope"},
    {TensorRole::latent_norm, "latent_norm"},
    {TensorRole::k_up, "k_up"},
    {TensorRole::v_up, "v_up"},
    {TensorRole::q_norm, "q_norm"},
    {TensorRole::k_norm, "k_norm"},
    {TensorRole::sinks, "sinks"},
    {TensorRole::o, "o"},
    {TensorRole::state_q, "state_q"},
    {TensorRole::state_k, "state_k"},
    {TensorRole::state_v, "state_v"},
    {TensorRole::state_gate, "state_gate"},
    {TensorRole::state_step, "state_step"},
    {TensorRole::state_strength, "state_strength"},
    {TensorRole::conv_q, "conv_q"},
    {TensorRole::conv_k, "conv_k"},
    {TensorRole::conv_v, "conv_v"},
    {TensorRole::state_decay, "state_decay"},
    {TensorRole::state_step_bias, "state_step_bias"},
    {TensorRole::state_skip, "state_skip"},
    {TensorRole::state_norm, "state_norm"},
    {TensorRole::state_out, "state_out"},
    {TensorRole::laurel_down, "laurel_down"},
    {TensorRole::laurel_up, "laurel_up"},
    {TensorRole::laurel_norm, "laurel_norm"},
    {TensorRole::attn_post_norm, "attn_post_norm"},
    {TensorRole::ffn_norm, "ffn_norm"},
    {TensorRole::gate, "gate"},
    {TensorRole::up, "up"},
    {TensorRole::down, "down"},
    {TensorRole::router_norm, "router_norm"},
    {TensorRole::router, "router"},
    {TensorRole::choice_bias, "choice_bias"},
    {TensorRole::expert_factors, "expert_factors"},
    {TensorRole::experts_norm, "experts_norm"},
    {TensorRole::experts_post_norm, "experts_post_norm"},
    {TensorRole::dense_post_norm, "dense_post_norm"},
    {TensorRole::experts_in, "experts_in"},
    {TensorRole::experts_out, "experts_out"},
    {TensorRole::expert_gate, "expert_gate"},
    {TensorRole::expert_up, "expert_up"},
    {TensorRole::expert_down, "expert_down"},
    {TensorRole::shared_gate, "shared_gate"},
    {TensorRole::shared_up, "shared_up"},
    {TensorRole::shared_down, "shared_down"},
    {TensorRole::shared_router, "shared_router"},
    {TensorRole::ffn_post_norm, "ffn_post_norm"},
    {TensorRole::stream_correct, "stream_correct"},
    {TensorRole::stream_scale, "stream_scale"},
    {TensorRole::input_gate, "input_gate"},
    {TensorRole::input_out, "input_out"},
    {TensorRole::input_post_norm, "input_post_norm"},
    {TensorRole::layer_scale, "layer_scale"},
    {TensorRole::norm, "norm"},
    {TensorRole::stream_out, "stream_out"},
    {TensorRole::head_down, "head_down"},
    {TensorRole::lm_head, "lm_head"},
}};
static_assert(kRoles.back().role == TensorRole::lm_head &&
              kRoles.size() == static_cast<size_t>(TensorRole::lm_head) + 1);

bool is_of_layer(TensorRole role) {
  return role >= TensorRole::attn_norm && role <= TensorRole::layer_scale;
}

// Whether the config has a tensor with this role: a table with only that row gives one.
bool wants(ModelConfig config, TensorRole role) {
  const TensorRow row{"tensor", {role}};
  config.tensors = {&row, 1};
  return !outer_tensors(config).empty();
}

// Checks the rows of the first layer and of the outer tensors.
void check_rows_of_layer(const ModelConfig& config) {
  std::array<int, kRoles.size()> rows{};
  const auto count = [&](const std::vector<ModelTensor>& tensors, bool of_layer) {
    for (const ModelTensor& tensor : tensors) {
      for (const TensorPart& part : tensor.parts) {
        const bool counted =
            !tensor.is_bias && tensor.expert <= 0 && tensor.head <= 0 && tensor.stream <= 0;
        if (!counted || is_of_layer(part.role) != of_layer) continue;
        ++rows[static_cast<size_t>(part.role)];
      }
    }
  };
  count(layer_tensors(config, 0), true);
  count(outer_tensors(config), false);
  for (const auto& [role, name] : kRoles) {
    const int found = rows[static_cast<size_t>(role)], expected = wants(config, role) ? 1 : 0;
    if (found == expected) continue;
    throw Error(cat("the table of tensors of ", config.architecture, ": has ", found, " rows for ",
                    quote(name), " with this config, expected ", expected),
                "rows are in src/config/families; those of layers have '{}' in the name");
  }
}

}  // namespace

// Checks one layer of each kind that has tensors of its own.
void check_rows(const ModelConfig& config) {
  std::set<std::tuple<Mixing, FeedForward, bool, bool, bool>> checked;
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    LayerDescription layer = config.layer(index);
    const bool writes = config.writes_cache(index);
    if (!checked
             .insert({layer.mixing, layer.feed_forward, writes, layer.v_is_k, layer.state_beside})
             .second) {
      continue;
    }
    layer.cache_of = writes ? 0 : -1;
    ModelConfig one = config;
    one.layers = {layer};
    check_rows_of_layer(one);
  }
}

}  // namespace fp8kv
