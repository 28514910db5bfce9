// Muse Glimmer: attention of Qwen 3 with gated output, norms of heads without weights, and norms
// around the blocks. Only layers with a window rotate.
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/muse.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
void parse_muse(const Json& config, double usual_output, ModelConfig& out) {
  // Runtimes have other defaults for these.
  config.at("max_position_embeddings");
  if (!config.has("rope_theta")) config.at("rope_parameters").at("rope_theta");
  BlockConfig& block = out.block;
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.embed_norm = out.bare_embed_norm = true;
  block.norm_plus_one = block.last_norm_whole = true;
  block.norm_place = NormPlace::around;
  block.qk_norm = QkNorm::plain_all;
  block.attention_gate = AttentionGate::sigmoid;
  block.logit_multiplier = positive_or(config, "output_multiplier", usual_output);
  block.logit_cap = positive_or(config, "final_logit_softcapping", 20.0);
  out.post_norm_eps = positive_or(config, "post_norm_eps", 1e-8);
}

std::vector<bool> parse_muse_rotations(const Json& config, ModelConfig& out) {
  std::vector<bool> turns;
  const int64_t last = out.n_layers() - 1;
  const auto thetas = config.find("layer_rope_theta");
  if (thetas && (!thetas->is_array() || thetas->size() != out.layers.size())) {
    fail(thetas->where(), ": is ", thetas->brief(), ", expected an array of ",
         count_of(out.layers.size(), "number"));
  }
  for (int64_t i = 0; i <= last; ++i) {
    turns.push_back((last - i) % 4 != 0);
    if (!thetas) continue;
    const Json theta = (*thetas)[static_cast<size_t>(i)];
    turns.back() = theta.as_double() != 0.0;
    if (!turns.back() || theta.as_double() == out.ropes.front().theta) continue;
    fail(theta.where(), ": is ", theta.brief(), ", expected 0 or ", out.ropes.front().theta,
         ", the base that runtimes take for all layers");
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i]) out.layer_ropes[i] = -1;
  }
  return turns;
}

namespace {

using enum TensorRole;

// Only vLLM reads these keys. Throws where they say something other than transformers takes.
void check_granted_by_muse(const Json& config, double q_multiplier) {
  for (const char* key : {"use_qk_norm", "use_attn_output_gate", "normalize_tok_embeddings"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false, expected true, which transformers takes for it");
  }
  const auto scale = config.find("scale_query_by");
  if (!scale || scale->as_double() == q_multiplier) return;
  fail(scale->where(), ": is ", scale->brief(), ", but qk_scale_factor is ", q_multiplier,
       ": runtimes differ in which they go by");
}

// The factor of Q. Published files had it times the root of head_dim at first, and vLLM tells the
// two by their size.
double parse_q_multiplier(const Json& config, int64_t head_dim) {
  const Json factor = config.at("qk_scale_factor");
  const double value = positive_number(factor);
  if (value < std::sqrt(static_cast<double>(head_dim))) return value;
  throw Error(cat(factor.where(), ": is ", factor.brief(), ", expected less than the root of ",
                  head_dim, ", the head size"),
              "vLLM divides larger factors by that root, and transformers does not");
}

// vLLM has its own list of layers that rotate, and a window in these alone.
void check_rotating(const Json& config, const std::vector<bool>& turns, const ModelConfig& out) {
  const auto listed = config.find("no_rope_layers");
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    const bool turning = turns[static_cast<size_t>(i)];
    const bool in_vllm = listed ? rotating_layers(config, turns.size())[static_cast<size_t>(i)]
                                : (out.n_layers() - 1 - i) % 4 != 0;
    if (turning == in_vllm && turning == (out.layer(i).mixing == Mixing::window)) continue;
    throw Error(
        cat(config.where(), ": layer ", i, turning ? " rotates" : " does not rotate",
            " by layer_rope_theta, and ",
            in_vllm != turning ? "no_rope_layers says otherwise" : "layer_types says otherwise"),
        "vLLM goes by no_rope_layers, and has a window where a layer rotates");
  }
}

void parse_muse_glimmer(const Json& config, ModelConfig& out) {
  parse_muse(config, 0.19611613513818404, out);
  out.block.q_multiplier = parse_q_multiplier(config, out.head_dim());
  check_granted_by_muse(config, out.block.q_multiplier);
  check_rotating(config, parse_muse_rotations(config, out), out);
}

std::span<const TensorRow> muse_glimmer_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {{"model.layers.{}.self_attn.gate_proj", {attn_gate}}},
              attention_out(),
              {{"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
               {"model.layers.{}.pre_feedforward_layernorm", {ffn_norm}}},
              gated_mlp(),
              {{"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}}},
              ending()});
  return rows;
}

}  // namespace

Architecture muse_glimmer() {
  return {.name = "MuseGlimmerForConditionalGeneration",
          .model_type = "muse_glimmer",
          .summary = "Muse Glimmer",
          .windows = true,
          .parse = parse_muse_glimmer,
          .tensors = muse_glimmer_tensors(),
          .activations = kSilu,
          .activation = "hidden_activation"};
}

}  // namespace fp8kv
