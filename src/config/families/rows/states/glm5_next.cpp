// GLM-5 Next: latent attention that does not rotate, in a few layers, where an indexer with pooled
// keys chooses blocks of tokens. The others keep the state of Kimi Delta Attention. Streams that
// mix connect the blocks, and their mean ends the model.
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/kda_states.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/groups/mixing_streams.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kGlm5Inside[] = {"glm5_next_text"};

// Whether the config has the key with a null.
bool is_null(const Json& config, std::string_view key) {
  for (size_t i = 0; i < config.size(); ++i) {
    if (config.key(i) == key) return config.value(i).is_null();
  }
  return false;
}

// vLLM reads these keys, and transformers takes it for granted what they say.
void check_granted_by_glm5(const Json& config) {
  for (const char* key : {"mla_use_nope", "mhc", "index_kpool_always_select_tail"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false: a model without it is not supported");
  }
  check_router_says(config, "scoring_func", "sigmoid");
  check_router_says(config, "topk_method", "noaux_tc");
  // The first four are of rotations, of which there are none. Layers say by mlp_layer_types whether
  // they have experts, and the last key is of layers that predict later tokens.
  for (const char* key :
       {"rope_theta", "rope_parameters", "rope_scaling", "indexer_rope_interleave",
        "first_k_dense_replace", "num_nextn_predict_layers"}) {
    config.find(key);
  }
}

void parse_unrotated_latent(const Json& config, ModelConfig& out) {
  config.at("q_lora_rank");
  parse_latent(config, out);
  out.latent->norm_eps = out.norm_eps;
  out.block.attention_scale = 1 / std::sqrt(static_cast<double>(out.latent->nope_dim));
  if (out.latent->rope_dim == 0) return;
  const Json rotated = config.at("qk_rope_head_dim");
  fail(rotated.where(), ": is ", rotated.brief(),
       ", expected 0: attention does not rotate in this architecture");
}

// Decays have a least value unless its key is null. In linear_attn_config, safe_gate gives the
// usual one in place of a null.
void parse_least_decay(const Json& config, RecurrenceConfig& state) {
  constexpr double kUsual = -5.0;
  const auto linear = config.find("linear_attn_config");
  const bool inside = linear && linear->has("gate_lower_bound");
  const Json& holder = inside ? *linear : config;
  const char* const key = inside ? "gate_lower_bound" : "linear_lower_bound";
  const auto least = holder.find(key);
  if (linear) {
    check_same(linear->find("gate_lower_bound"), config.find("linear_lower_bound"));
    if (is_null(*linear, "gate_lower_bound")) {
      fail(linear->where(), ": the key 'gate_lower_bound' is null, expected a number");
    }
  }
  const bool unbounded = !least && is_null(config, "linear_lower_bound");
  if (unbounded && !(linear && is_on(*linear, "safe_gate"))) return;
  state.least_log_decay = least ? least->as_double() : kUsual;
  if (state.least_log_decay < 0.0 && state.least_log_decay >= -1e4) return;
  fail(least->where(), ": is ", least->brief(), ", expected a number below 0, and above -10,000");
}

void parse_clamped_experts(const Json& config, ModelConfig& out) {
  for (const char* key : {"mlp_layer_types", "n_routed_experts"}) config.at(key);
  const ClampedSwiglu swiglu{.limit = static_cast<float>(positive_or(config, "swiglu_limit", 10.0)),
                             .form = SwigluForm::silu};
  out.swiglus.assign(out.layers.size(), {.routed = swiglu, .dense = swiglu});
  parse_latent_experts(config, out);
  if (!out.experts) {
    config.find("n_shared_experts");
    return;
  }
  check_same(config.find("num_local_experts"), config.find("n_routed_experts"));
  parse_sigmoid_router(config, out);
}

// Throws for a layer that takes over the choice of another: layers between keep a state, and hand
// on none.
void check_own_choice(const Json& config, const ModelConfig& out) {
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    if (!out.attends(i) || out.layer(i).index_bytes > 0) continue;
    fail(config.where(), ": layer ", i, " has no indexer of its own by indexer_types, ",
         "index_topk_pattern or index_topk_freq, expected one in every layer with attention");
  }
}

void parse_block_indexer(const Json& config, ModelConfig& out) {
  const Json head_dim = config.at("index_head_dim"), seen = config.at("index_topk");
  IndexerConfig indexer{.n_heads = in_range(config.at("index_n_heads"), kLargestDim),
                        .head_dim = in_range(head_dim, kLargestDim),
                        .block = in_range(config.at("index_kpool"), 2, kLongestContext),
                        .pooled = true,
                        .weighted = true,
                        .norms_tokens = true};
  const int64_t tokens = in_range(seen, kLongestContext);
  indexer.top_k = tokens / indexer.block;
  if (tokens % indexer.block != 0) {
    fail(seen.where(), ": is ", tokens, ", expected a multiple of index_kpool, which is ",
         indexer.block);
  }
  if (indexer.head_dim % 2 != 0) {
    fail(head_dim.where(), ": is ", indexer.head_dim, ", expected an even number");
  }
  check_own_choice(config, out);
  if (indexer.most_tokens() < out.max_seq_len) {
    out.indexer = indexer;
    return;
  }
  for (LayerDescription& layer : out.layers) layer.index_bytes = 0;
}

void parse_glm5_next(const Json& config, ModelConfig& out) {
  check_granted_by_glm5(config);
  parse_unrotated_latent(config, out);
  refuse_full_gate(config);
  parse_kda(config, out);
  parse_least_decay(config, *out.recurrence);
  parse_clamped_experts(config, out);
  parse_block_indexer(config, out);
  parse_mixing_streams(config, out);
  out.hyper->mean_head = true;
}

TensorRows unrotated_latent() {
  return {{"model.layers.{}.self_attn.q_a_proj", {q_down}},
          {"model.layers.{}.self_attn.q_a_layernorm", {q_down_norm}},
          {"model.layers.{}.self_attn.q_b_proj", {q}},
          {"model.layers.{}.self_attn.kv_a_proj_with_mqa", {latent}},
          {"model.layers.{}.self_attn.kv_a_layernorm", {latent_norm}},
          {"model.layers.{}.self_attn.kv_b_proj", {k_up, v_up}, TensorLayout::by_head}};
}

TensorRow glm5_bare(const char* name, TensorRole role) {
  return {.name = name, .roles = {role}, .bare = true};
}

TensorRows mean_streams() {
  return {glm5_bare("model.layers.{}.hc_attn_fn", hyper_attn),
          glm5_bare("model.layers.{}.hc_attn_base", hyper_attn_base),
          glm5_bare("model.layers.{}.hc_attn_scale", hyper_attn_scale),
          glm5_bare("model.layers.{}.hc_ffn_fn", hyper_ffn),
          glm5_bare("model.layers.{}.hc_ffn_base", hyper_ffn_base),
          glm5_bare("model.layers.{}.hc_ffn_scale", hyper_ffn_scale)};
}

std::span<const TensorRow> glm5_next_tensors() {
  static const TensorRows rows =
      joined({opening(),
              unrotated_latent(),
              latent_indexer(),
              {glm5_bare("model.layers.{}.self_attn.indexer.index_kpool_compress_gate", index_gate),
               glm5_bare("model.layers.{}.self_attn.indexer.index_kpool_compress_ape", index_bias)},
              attention_out(),
              kda_tensors(VectorForm::plain),
              next_norm(),
              gated_mlp(),
              deepseek_experts(),
              mean_streams(),
              ending()});
  return rows;
}

std::span<const TensorRow> glm5_next_tensors_together() {
  static const TensorRows rows = with_experts(glm5_next_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture glm5_next() {
  return {.name = "Glm5NextForConditionalGeneration",
          .model_type = "glm5_next",
          .summary = "GLM-5.3 Flash",
          .states = true,
          .parse = parse_glm5_next,
          .tensors = glm5_next_tensors(),
          .other_tensors = glm5_next_tensors_together(),
          .activations = kSilu,
          .rope = {.none = true},
          .inner_types = kGlm5Inside};
}

}  // namespace fp8kv
