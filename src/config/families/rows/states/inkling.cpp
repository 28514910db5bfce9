// Inkling: attention with a bias for the distance between two tokens in place of a rotation, and
// short convolutions around attention and the feed-forward part. Layers with a window have heads of
// their own number and size. The router also weighs experts that every token goes to.
#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kOtherTypes[] = {"inkling_model"};

// vLLM alone reads these switches. transformers takes them for on.
void check_inkling_granted(const Json& config) {
  for (const char* key : {"inference_moe_w13_interleaved", "norm_after_topk", "shared_expert_sink",
                          "use_embed_norm", "use_gate_bias", "use_global_scale", "use_sconv"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false, expected true, which transformers takes for it");
  }
  for (const char* key : {"o_bias", "q_bias"}) {
    refuse_if_set(config, key, "a bias in attention");
  }
  check_router_says(config, "gate_activation", "sigmoid");
  const auto shared = config.find("shared_experts_size");
  if (shared && shared->as_int() != 1) {
    fail(shared->where(), ": is ", shared->brief(), ", expected 1");
  }
  // These matter to draft layers alone, follow from other keys, or are read by no runtime.
  for (const char* key :
       {"chain_hidden_post_norm", "mtp_hidden_states_first", "mtp_local_layer_ids",
        "number_of_conv_states", "rms_norm_eps_moe_gate"}) {
    config.find(key);
  }
}

// Layers without a window scale Q and their biases with the logarithm of the position.
void parse_growth(const Json& config, ModelConfig& out) {
  const auto floor = config.find("log_scaling_n_floor");
  const double alpha = positive_or(config, "log_scaling_alpha", 0.1);
  if (!floor) return;
  const bool any = std::any_of(out.layers.begin(), out.layers.end(),
                               [](const auto& layer) { return layer.mixing == Mixing::full; });
  RopeConfig growth;
  growth.original_context = static_cast<double>(in_range(*floor, kLongestContext));
  growth.q_growth = alpha;
  growth.q_grows_evenly = true;
  growth.turns = false;
  if (!any) return;
  out.ropes = {growth};
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    if (out.window(i) == 0) out.layer_ropes[static_cast<size_t>(i)] = 0;
  }
}

void parse_router(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"n_routed_experts"}, "moe_intermediate_size"}, out);
  // Runtimes have other defaults for these two.
  const auto scale = config.find("route_scale"), shared = config.find("n_shared_experts");
  if (!out.experts) return;
  set_plain_sigmoid_router(config, "route_scale", 1.0, out);
  if (!scale) config.at("route_scale");
  ExpertsConfig& experts = *out.experts;
  experts.fixed = in_range(shared ? *shared : config.at("n_shared_experts"), kLargestDim);
  experts.count += experts.fixed;
  experts.routing.per_token += experts.fixed;
}

// Files have rows for tokens that get no logits.
void parse_vocabulary(const Json& config, ModelConfig& out) {
  const auto padded = config.find("padded_vocab_size"), own = config.find("unpadded_vocab_size");
  if (padded && padded->as_int() != out.vocab_size) {
    fail(padded->where(), ": is ", padded->brief(), ", expected ", out.vocab_size,
         " like vocab_size: vLLM takes it for the rows in the files, and transformers ignores it");
  }
  const int64_t tokens = own ? in_range(*own, kLargestDim) : out.vocab_size;
  if (tokens >= out.vocab_size) return;
  out.stored_vocab = out.vocab_size;
  out.vocab_size = tokens;
}

void parse_inkling(const Json& config, ModelConfig& out) {
  check_inkling_granted(config);
  if (out.tied_embeddings) {
    fail(config.where(),
         ": tie_word_embeddings is true, expected false: no file of this "
         "architecture shares the embedding");
  }
  BlockConfig& block = out.block;
  block.qk_norm = QkNorm::per_head;
  block.attention_scale_by_size = true;
  block.ffn_scale = true;
  // Runtimes have other defaults for it.
  const Json width = config.at("logits_mup_width_multiplier");
  block.logit_multiplier = 1.0 / positive_number(width);
  out.embed_norm = true;
  const auto dim = config.find("d_rel"), extent = config.find("rel_extent");
  out.distances = DistanceConfig{dim ? in_range(*dim, kLargestDim) : 16,
                                 extent ? in_range(*extent, kLongestContext) : 1024};
  const auto taps = config.find("conv_kernel_size");
  out.short_convs = ShortConvsConfig{taps ? in_range(*taps, kMostConvWidth) : 4};
  parse_growth(config, out);
  parse_router(config, out);
  parse_vocabulary(config, out);
}

TensorRow bare(std::string_view name, std::vector<TensorRole> roles,
               TensorLayout layout = TensorLayout::rows) {
  return {.name = name, .roles = std::move(roles), .layout = layout, .bare = true};
}

std::span<const TensorRow> inkling_tensors() {
  static const TensorRows rows = joined(
      {{{"model.embed_tokens", {embedding}}, {"model.embed_tokens.embed_norm", {embed_norm}}},
       {{"model.layers.{}.input_layernorm", {attn_norm}}},
       qkv(),
       {{"model.layers.{}.self_attn.k_sconv.conv1d", {k_conv}},
        {"model.layers.{}.self_attn.v_sconv.conv1d", {v_conv}}},
       qk_norms(),
       {{"model.layers.{}.self_attn.r_proj", {distance}},
        bare("model.layers.{}.self_attn.rel_logits_proj.proj", {distance_bank})},
       attention_out(),
       {{"model.layers.{}.attn_sconv.conv1d", {attn_conv}}},
       next_norm(),
       gated_mlp(),
       {bare("model.layers.{}.mlp.global_scale", {dense_scale}),
        {"model.layers.{}.mlp.gate", {router}},
        {"model.layers.{}.mlp.gate.e_score_correction_bias", {choice_bias}},
        bare("model.layers.{}.mlp.gate.global_scale", {experts_scale})},
       experts_together(),
       {bare("model.layers.{}.mlp.shared_experts.gate_proj", {fixed_gate}),
        bare("model.layers.{}.mlp.shared_experts.up_proj", {fixed_up}),
        bare("model.layers.{}.mlp.shared_experts.down_proj", {fixed_down}),
        {"model.layers.{}.mlp_sconv.conv1d", {ffn_conv}}},
       ending()});
  return rows;
}

// Published files, and those that transformers saves of the model with images. Rows of gate and up
// take turns.
std::span<const TensorRow> inkling_published() {
  constexpr auto kInTurn = TensorLayout::in_turn;
  static const TensorRows rows = {
      {"model.embed", {embedding}},
      {"model.embed_norm", {embed_norm}},
      {"model.layers.{}.attn_norm", {attn_norm}},
      {"model.layers.{}.attn.wq_du", {q}},
      {"model.layers.{}.attn.wk_dv", {k}},
      {"model.layers.{}.attn.wv_dv", {v}},
      {"model.layers.{}.attn.k_sconv", {k_conv}},
      {"model.layers.{}.attn.v_sconv", {v_conv}},
      {"model.layers.{}.attn.q_norm", {q_norm}},
      {"model.layers.{}.attn.k_norm", {k_norm}},
      {"model.layers.{}.attn.wr_du", {distance}},
      bare("model.layers.{}.attn.rel_logits_proj.proj", {distance_bank}),
      {"model.layers.{}.attn.wo_ud", {o}},
      {"model.layers.{}.attn_sconv", {attn_conv}},
      {"model.layers.{}.mlp_norm", {ffn_norm}},
      {"model.layers.{}.mlp.w13_dn", {gate, up}, kInTurn},
      {"model.layers.{}.mlp.w2_md", {down}},
      bare("model.layers.{}.mlp.global_scale", {dense_scale}),
      {"model.layers.{}.mlp.gate", {router}},
      {"model.layers.{}.mlp.gate.bias", {choice_bias}},
      bare("model.layers.{}.mlp.gate.global_scale", {experts_scale}),
      bare("model.layers.{}.mlp.experts.w13_weight", {expert_gate, expert_up}, kInTurn),
      bare("model.layers.{}.mlp.experts.w2_weight", {expert_down}),
      bare("model.layers.{}.mlp.shared_experts.shared_w13_weight", {fixed_gate, fixed_up}, kInTurn),
      bare("model.layers.{}.mlp.shared_experts.shared_w2_weight", {fixed_down}),
      {"model.layers.{}.mlp_sconv", {ffn_conv}},
      {"model.norm", {norm}},
      {"lm_head", {lm_head}}};
  return rows;
}

}  // namespace

Architecture inkling() {
  return {.name = "InklingForCausalLM",
          .model_type = "inkling_text",
          .summary = "Inkling",
          .windows = true,
          .shapes = true,
          .parse = parse_inkling,
          .tensors = inkling_tensors(),
          .other_tensors = inkling_published(),
          .activations = kSilu,
          .rope = {.none = true},
          .more_types = kOtherTypes};
}

}  // namespace fp8kv
