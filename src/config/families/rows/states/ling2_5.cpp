// Ling 2.5: latent attention in the last layer of every group. The others have lightning attention,
// whose Q and K are normed and rotated before they enter the state.
#include <cmath>

#include "base/error.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/ling.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Throws where layer_types contradicts the size of groups, by which the model's own code goes.
void check_kinds_of_layers(const Json& config, const ModelConfig& out) {
  const Json size = config.at("layer_group_size");
  const int64_t group = in_range(size, kMostLayers), n_layers = out.n_layers();
  for (int64_t i = 0; i < n_layers; ++i) {
    const bool attends = (i + 1) % group == 0 || i >= n_layers / group * group;
    if (out.attends(i) == attends) continue;
    fail(size.where(), ": is ", group, ", contrary to layer_types at layer ", i,
         ": runtimes differ in which they go by");
  }
}

// Throws for sizes for which the decays are not known.
void check_decays(const Json& config, const ModelConfig& out) {
  if (out.n_layers() == 1) {
    fail(config.at("num_hidden_layers").where(),
         ": is 1, expected 2 or more: the decays of a single layer are not defined");
  }
  if ((out.n_heads & (out.n_heads - 1)) == 0) return;
  const Json heads = config.at("num_attention_heads");
  fail(heads.where(), ": is ", heads.brief(),
       ", expected a power of 2: runtimes differ in the decays of other numbers of heads");
}

void check_ling25_switches(const Json& config) {
  refuse_if_set(config, "tie_word_embeddings", "an embedding in place of lm_head");
  for (const char* key : {"linear_silu", "use_linear_silu"}) {
    refuse_if_set(config, key, "SiLU of Q, K and V");
  }
  for (const char* key : {"attention_bias", "use_bias", "use_qkv_bias"}) {
    refuse_if_set(config, key, "biases of products");
  }
  for (const char* key : {"linear_rope", "rope_interleave"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false, expected true in this architecture");
  }
  config.find("use_rmsnorm");  // all norms are by the root mean square
}

// Half of a head rotates where the config does not say the part.
void check_usual_part(const Json& config, const ModelConfig& out) {
  const Json rotated = config.at("qk_rope_head_dim");
  for (const char* key : {"partial_rotary_factor", "rotary_dim"}) {
    if (config.has(key)) return;
  }
  const int64_t head_dim = config.at("head_dim").as_int();
  if (2 * out.latent->rope_dim == head_dim) return;
  fail(rotated.where(), ": is ", out.latent->rope_dim, ", expected half of head_dim, which is ",
       head_dim, ": so much of a head rotates without partial_rotary_factor");
}

void parse_lightning_state(const Json& config, ModelConfig& out) {
  RecurrenceConfig& state = out.recurrence.emplace();
  state.update = StateUpdate::add;
  state.norm = StateNorm::groups;
  state.gate = Activation::sigmoid;
  state.fixed_decays = true;
  // The first layer's slopes are above those of the heads, and vLLM's and SGLang's are not.
  state.decay_layers = {.first = 1, .divisor_eps = 0.0};
  state.least_step = state.most_step = 1.0;
  state.activates = false;
  state.qk_norm = is_on(config, "use_qk_norm");
  state.k_heads = state.v_heads = out.n_heads;
  state.k_dim = state.v_dim = in_range(config.at("head_dim"), 2, kMostStateRows);
  state.multipliers.q = 1.0 / std::sqrt(static_cast<double>(state.k_dim));
  constexpr int64_t kUsualGroups = 4;
  const auto groups = config.find("group_norm_size");
  state.norm_groups = groups ? in_range(*groups, state.v_width()) : kUsualGroups;
  if (state.v_width() % state.norm_groups != 0) {
    fail(groups ? groups->where() : config.where(), ": the output of a layer has ", state.v_width(),
         " elements, which do not make ", state.norm_groups, " groups (group_norm_size)");
  }
  // The rotation of latent attention, by halves of what rotates.
  RopeConfig rope = out.ropes[0];
  rope.pairs = RopePairs::halves;
  state.rope = static_cast<int32_t>(out.ropes.size());
  out.ropes.push_back(rope);
}

TensorRows ling25_tensors(bool q_in_two) {
  return joined({{ling_row("model.word_embeddings", embedding),
                  ling_row("model.layers.{}.input_layernorm", attn_norm)},
                 ling_attention(q_in_two),
                 {{"model.layers.{}.attention.query_key_value", {state_q, state_k, state_v}},
                  ling_row("model.layers.{}.attention.query_layernorm", state_q_norm),
                  ling_row("model.layers.{}.attention.key_layernorm", state_k_norm),
                  ling_row("model.layers.{}.attention.g_proj", state_gate),
                  ling_row("model.layers.{}.attention.g_norm", state_norm),
                  ling_row("model.layers.{}.attention.dense", state_out)},
                 ling_feed_forward()});
}

std::span<const TensorRow> ling25_q_tensors() {
  static const TensorRows rows = ling25_tensors(true);
  return rows;
}

std::span<const TensorRow> ling25_plain_tensors() {
  static const TensorRows rows = ling25_tensors(false);
  return rows;
}

void parse_ling25(const Json& config, ModelConfig& out) {
  check_ling25_switches(config);
  check_kinds_of_layers(config, out);
  check_decays(config, out);
  parse_latent(config, out);
  out.tensors = out.latent->q_rank > 0 ? ling25_q_tensors() : ling25_plain_tensors();
  check_rotated(config, out);
  check_usual_part(config, out);
  parse_lightning_state(config, out);
  parse_ling2_experts(config, out);
}

}  // namespace

Architecture ling2_5() {
  return {
      .name = "BailingMoeV2_5ForCausalLM",
      .model_type = "bailing_hybrid",
      .summary = "Ling and Ring 2.5 and 2.6",
      .states = true,
      .parse = parse_ling25,
      .tensors = ling25_q_tensors(),
      .activations = kSilu,
      .rope = {
          .theta = 6e5, .checks_part = true, .pairs = RopePairs::neighbours, .reads_mscale = true}};
}

}  // namespace fp8kv
