// MiMo V2 and V2.5: layers with a window have sinks, a rotation and a number of KV heads of their
// own. V is narrower than K, and scaled before it is cached. Experts and router of DeepSeek V3,
// without a shared expert. V2.5 may have Q, K and V in one matrix. Its keys are those that runtimes
// read: transformers 5.24 does not have it.
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// vLLM and SGLang read these keys. transformers 5.24 ignores them and takes numbers of its own.
// Throws where that makes a difference.
void check_taken(const Json& config, const char* key, double taken) {
  const auto said = config.find(key);
  if (!said || said->as_double() == taken) return;
  const bool whole = taken == std::floor(taken) && taken < 1e15;
  fail(said->where(), ": is ", said->brief(), ", expected ",
       whole ? cat(static_cast<int64_t>(taken)) : cat(taken),
       ", which transformers takes whatever this key says");
}

// Throws unless a list of 0 and 1 has 1 for just the layers that `counts`.
template <typename Counts>
void check_list(const Json& config, const char* key, size_t n_layers, const Counts& counts) {
  const auto list = config.find(key);
  if (!list) return;
  if (!list->is_array() || list->size() != n_layers) {
    fail(list->where(), ": is ", list->brief(), ", expected an array of ",
         count_of(n_layers, "number"));
  }
  for (size_t i = 0; i < n_layers; ++i) {
    const int64_t expected = counts(i) ? 1 : 0;
    if ((*list)[i].as_int() == expected) continue;
    fail((*list)[i].where(), ": is ", (*list)[i].brief(), ", expected ", expected,
         " like transformers, which does not read this list");
  }
}

// Which layers have windows and which have experts: lists of the published config, against the
// lists that transformers reads or its defaults.
void check_layer_lists(const Json& config, const ModelConfig& out) {
  const size_t n_layers = out.layers.size();
  const auto types = config.find("layer_types");
  if (!types) config.at("hybrid_layer_pattern");
  if (types && (!types->is_array() || types->size() != n_layers)) {
    fail(types->where(), ": is ", types->brief(), ", expected an array of ",
         count_of(n_layers, "layer type"));
  }
  check_list(config, "hybrid_layer_pattern", n_layers, [&](size_t i) {
    if (types) return (*types)[i].as_string() == "sliding_attention";
    return i > 0 && (i + 1) % 6 != 0;
  });
  check_list(config, "moe_layer_freq", n_layers,
             [&](size_t i) { return out.layers[i].feed_forward == FeedForward::experts; });
}

void check_heads(const Json& config, const ModelConfig& out) {
  for (const char* key : {"head_dim", "v_head_dim"}) config.at(key);  // models have other defaults
  const auto size = static_cast<double>(out.head_dim());
  const auto v_size = static_cast<double>(out.layers.front().v_head_dim);
  const auto kv_heads = config.at("num_key_value_heads").as_double();
  check_taken(config, "swa_num_attention_heads", static_cast<double>(out.n_heads));
  check_taken(config, "swa_num_key_value_heads", 2 * kv_heads);
  check_taken(config, "swa_head_dim", size);
  check_taken(config, "swa_v_head_dim", v_size);
}

// A rotation that scales says which part of a head rotates: the usual part is that of the plain one
// alone.
void check_scaled_part(const Json& rotation) {
  if (!rotation.is_object() || rotation.has("partial_rotary_factor")) return;
  const auto type = rotation.find("rope_type");
  if (!type || type->as_string() == "default") return;
  fail(rotation.where(), ": is a rope of type ", type->brief(),
       " without a partial_rotary_factor, expected one: transformers takes 1, and 0.334 for "
       "\"default\" alone");
}

// The number that transformers takes for a kind of layer.
double taken_of(const Json& config, const char* kind, const char* key, double otherwise) {
  const auto rotations = config.find("rope_parameters");
  const auto own = rotations ? rotations->find(kind) : std::nullopt;
  return own ? positive_or(*own, key, otherwise) : otherwise;
}

void check_rotations(const Json& config) {
  constexpr const char *kFull = "full_attention", *kWindow = "sliding_attention";
  constexpr const char *kTheta = "rope_theta", *kPart = "partial_rotary_factor";
  if (const auto rotations = config.find("rope_parameters")) {
    for (size_t i = 0; i < rotations->size(); ++i) check_scaled_part(rotations->value(i));
  }
  check_taken(config, kTheta, taken_of(config, kFull, kTheta, 5e6));
  check_taken(config, "swa_rope_theta", taken_of(config, kWindow, kTheta, 1e4));
  for (const char* kind : {kFull, kWindow}) {
    check_taken(config, kPart, taken_of(config, kind, kPart, 0.334));
  }
}

void check_sinks(const Json& config) {
  const auto refuse = [&](const char* key, const char* expected) {
    fail(config.at(key).where(), ": is ", config.at(key).brief(), ", expected ", expected,
         ": just the layers with a window have sinks");
  };
  if (config.get_bool("add_full_attention_sink_bias", false)) {
    refuse("add_full_attention_sink_bias", "false");
  }
  if (!is_on(config, "add_swa_attention_sink_bias")) {
    refuse("add_swa_attention_sink_bias", "true");
  }
}

void parse_mimo_v2_router(const Json& config, ModelConfig& out) {
  check_router_says(config, "scoring_func", "sigmoid");
  check_router_says(config, "topk_method", "noaux_tc");
  const auto shared = config.find("n_shared_experts");
  if (shared && shared->as_int() != 0) {
    fail(shared->where(), ": is ", shared->brief(),
         ", expected null: this architecture has no shared expert");
  }
  parse_experts(config, {{"n_routed_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("n_routed_experts");
  if (!out.experts) return;
  parse_sigmoid_router(config, out);
  out.experts->routing.scale = positive_or(config, "routed_scaling_factor", 1.0);
}

void parse_mimo_v2_attention(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.block.sinks = out.block.window_sinks = true;
  if (!mentions(config, "attention_value_scale")) {
    throw Error(cat(config.where(), ": the key 'attention_value_scale' is missing"),
                "write the number that the model was trained with: transformers takes 0.707, and "
                "vLLM takes 1");
  }
  out.block.v_multiplier = positive_or(config, "attention_value_scale", 1.0);
}

void parse_mimo_v2(const Json& config, ModelConfig& out) {
  check_layer_lists(config, out);
  check_heads(config, out);
  check_rotations(config);
  check_sinks(config);
  check_taken(config, "layernorm_epsilon", positive_or(config, "rms_norm_eps", 1e-5));
  out.norm_eps = positive_or(config, "rms_norm_eps", 1e-5);
  parse_mimo_v2_attention(config, out);
  parse_mimo_v2_router(config, out);
}

// Throws unless layers with a window have as many query heads as others, of the same sizes.
void check_window_heads(const Json& config) {
  constexpr std::pair<const char*, const char*> kAlike[] = {
      {"swa_num_attention_heads", "num_attention_heads"},
      {"swa_head_dim", "head_dim"},
      {"swa_v_head_dim", "v_head_dim"}};
  for (const auto& [own, others] : kAlike) {
    const Json said = config.at(own), expected = config.at(others);
    if (said.as_int() == expected.as_int()) continue;
    fail(said.where(), ": is ", said.brief(), ", expected ", expected.brief(), " like ", others,
         ": other sizes in layers with a window are not supported");
  }
}

TensorRows mimo_v2_attention(const TensorRows& projections) {
  return joined(
      {opening(),
       projections,
       {{.name = "model.layers.{}.self_attn.attention_sink_bias", .roles = {sinks}, .bare = true}},
       attention_out(),
       next_norm()});
}

TensorRows mimo_v2_rows(const TensorRows& projections) {
  return joined({mimo_v2_attention(projections), gated_mlp(), deepseek_experts(), ending()});
}

std::span<const TensorRow> mimo_v2_tensors() {
  static const TensorRows rows = mimo_v2_rows(qkv());
  return rows;
}

std::span<const TensorRow> mimo_v2_tensors_fused() {
  static const TensorRows rows = mimo_v2_rows({{.name = "model.layers.{}.self_attn.qkv_proj",
                                                .roles = {q, k, v},
                                                .layout = TensorLayout::by_kv_head,
                                                .own_blocks = true}});
  return rows;
}

std::span<const TensorRow> mimo_v2_tensors_together() {
  static const TensorRows rows = with_experts(mimo_v2_tensors(), experts_together());
  return rows;
}

void parse_mimo_v25(const Json& config, ModelConfig& out) {
  // No class of transformers has defaults for these.
  for (const char* key : {"hybrid_layer_pattern", "moe_layer_freq", "partial_rotary_factor",
                          "rope_theta", "swa_rope_theta", "swa_num_key_value_heads"}) {
    config.at(key);
  }
  if (const Json each = config.at("moe_layer_freq");
      !each.is_array() || each.size() != out.layers.size()) {
    fail(each.where(), ": is ", each.brief(), ", expected an array of ",
         count_of(out.layers.size(), "number"));
  }
  for (const char* key : {"hybrid_block_size", "layer_types", "mlp_layer_types"}) {
    const auto said = config.find(key);
    if (said) fail(said->where(), ": is ", said->brief(), ", expected null in this architecture");
  }
  // The first is the dtype of a product in runtimes. The others matter to layers with a window.
  for (const char* key : {"moe_router_dtype", "sliding_window", "sliding_window_size"}) {
    config.find(key);
  }
  // partial_rotary_factor holds in all layers.
  for (RopeConfig& rope : out.ropes) rope.rotary_dim = out.ropes.front().rotary_dim;
  check_window_heads(config);
  check_sinks(config);
  out.norm_eps = positive_number(config.at("layernorm_epsilon"));
  parse_mimo_v2_attention(config, out);
  parse_mimo_v2_router(config, out);
  const std::string layout = config.get_string("attention_projection_layout", "split");
  if (layout == "fused_qkv") out.tensors = mimo_v2_tensors_fused();
  if (layout == "fused_qkv" || layout == "split") return;
  fail(config.at("attention_projection_layout").where(), ": is ", quote(layout),
       ", expected \"fused_qkv\" or \"split\"");
}

}  // namespace

Architecture mimo_v25() {
  return {.name = "MiMoV2ForCausalLM",
          .model_type = "mimo_v2",
          .summary = "MiMo V2.5 and V2.6",
          .windows = true,
          .own_kv_heads = true,
          .narrow_v = true,
          .parse = parse_mimo_v25,
          .tensors = mimo_v2_tensors(),
          .activations = kSilu,
          .norm_eps = nullptr,
          .rope = {.reads_part = true, .by_layer_type = true, .local_key = "swa_rope_theta"}};
}

Architecture mimo_v2() {
  return {.name = "MiMoV2FlashForCausalLM",
          .model_type = "mimo_v2_flash",
          .summary = "MiMo V2 Flash",
          .windows = true,
          .own_kv_heads = true,
          .narrow_v = true,
          .parse = parse_mimo_v2,
          .tensors = mimo_v2_tensors(),
          .other_tensors = mimo_v2_tensors_together(),
          .activations = kSilu,
          .norm_eps = nullptr,
          .rope = {.theta = 5e6,
                   .part = 0.334,
                   .reads_part = true,
                   .by_layer_type = true,
                   .local_key = "swa_rope_theta",
                   .local_theta = 1e4}};
}

}  // namespace fp8kv
