// OLMo Hybrid: layers with attention are like OLMo 3's, with norms after the blocks. The others
// keep the state of a gated DeltaNet, with norms before the blocks.
#include "base/error.h"
#include "config/families/groups/state_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Published files have null for the base: then nothing rotates. Transformers rotates by 10,000
// where there is no such key at all.
void set_olmo_ropes(const Json& config, ModelConfig& out) {
  constexpr const char* kParameters = "rope_parameters";
  constexpr const char* kTheta = "rope_theta";
  if (const auto beside = config.find("rope_scaling")) {
    fail(beside->where(), ": is ", beside->brief(), ", expected null beside rope_parameters");
  }
  const auto ropes = config.find(kParameters);
  if (mentions(config, kTheta) || !ropes || !mentions(*ropes, kTheta)) {
    throw Error(cat(config.where(), ": has no base under rope_parameters.rope_theta"),
                "write null there if nothing rotates, or else the base: transformers takes 10,000 "
                "where it is missing");
  }
  if (!ropes->has(kTheta)) out.layer_ropes.assign(out.layers.size(), -1);
}

void parse_olmo_hybrid(const Json& config, ModelConfig& out) {
  config.at("layer_types");
  if (const auto size = config.find("head_dim"); size && size->as_int() * out.n_heads != out.dim) {
    fail(size->where(), ": is ", size->brief(), ", expected ", out.dim, " / ", out.n_heads,
         ", which vLLM takes whatever this key says");
  }
  set_olmo_ropes(config, out);
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::whole;
  out.block.norm_place = NormPlace::after;
  out.block.states_normed_before = true;
  parse_delta_sizes(config, out);
  out.recurrence->norm_eps = 1e-5;
  out.recurrence->most_strength = is_on(config, "linear_allow_neg_eigval") ? 2.0 : 1.0;
}

// Transformers renames norms as it saves, also those of layers with attention.
std::span<const TensorRow> olmo_hybrid_tensors() {
  constexpr const char* kSecondNorm = "model.layers.{}.post_attention_layernorm";
  constexpr const char* kSavedSecondNorm = "model.layers.{}.feedforward_layer_norm";
  static const TensorRows rows =
      joined({{{"model.embed_tokens", {embedding}},
               {.name = "model.layers.{}.input_layernorm",
                .roles = {attn_norm},
                .other_name = "model.layers.{}.attention_layer_norm"}},
              qkv(),
              qk_norms(),
              attention_out(),
              {{"model.layers.{}.linear_attn.q_proj", {state_q}},
               {"model.layers.{}.linear_attn.k_proj", {state_k}},
               {"model.layers.{}.linear_attn.v_proj", {state_v}},
               {"model.layers.{}.linear_attn.g_proj", {state_gate}},
               {"model.layers.{}.linear_attn.a_proj", {state_step}},
               {"model.layers.{}.linear_attn.b_proj", {state_strength}},
               {"model.layers.{}.linear_attn.q_conv1d", {conv_q}},
               {"model.layers.{}.linear_attn.k_conv1d", {conv_k}},
               {"model.layers.{}.linear_attn.v_conv1d", {conv_v}},
               {"model.layers.{}.linear_attn.A_log", {state_decay}, TensorLayout::rows, true},
               {"model.layers.{}.linear_attn.dt_bias", {state_step_bias}, TensorLayout::rows, true},
               {"model.layers.{}.linear_attn.o_norm", {state_norm}},
               {"model.layers.{}.linear_attn.o_proj", {state_out}},
               {.name = kSecondNorm, .roles = {attn_post_norm}, .other_name = kSavedSecondNorm},
               {.name = kSecondNorm, .roles = {ffn_norm}, .other_name = kSavedSecondNorm}},
              gated_mlp(),
              {{"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

}  // namespace

Architecture olmo_hybrid() {
  return {.name = "OlmoHybridForCausalLM",
          .model_type = "olmo_hybrid",
          .summary = "OLMo Hybrid",
          .states = true,
          .parse = parse_olmo_hybrid,
          .tensors = olmo_hybrid_tensors(),
          .activations = kSilu};
}

}  // namespace fp8kv
