// LFM2: most layers are short convolutions between two gates, and the others have attention.
#include "config/families/rows/states/lfm2.h"

#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void check_types(const Json& config) {
  const auto types = config.find("layer_types");
  for (size_t i = 0; types && i < types->size(); ++i) {
    const std::string type = (*types)[i].as_string();
    if (type == "conv" || type == "full_attention") continue;
    fail((*types)[i].where(), ": is ", quote(type), ", expected 'conv' or 'full_attention'");
  }
}

// Published files repeat some numbers under keys that transformers never reads.
void check_second_spelling(const Json& config, const char* key, double number) {
  const auto said = config.find(key);
  if (!said || said->as_double() == number) return;
  fail(said->where(), ": is ", said->brief(), ", expected ", number,
       " like in the key that counts");
}

// By default, files give 3 / 2 of the width, before it is rounded up.
void set_width(const Json& config, ModelConfig& out) {
  const auto said = config.find("block_ff_dim"), multiple = config.find("block_multiple_of");
  const double factor = positive_or(config, "block_ffn_dim_multiplier", 1.0);
  out.hidden_dim = in_range(said ? *said : config.at("intermediate_size"), kLargestDim);
  if (!is_on(config, "block_auto_adjust_ff_dim")) return;
  const auto two_thirds = static_cast<double>(2 * out.hidden_dim / 3);
  const double width = factor * two_thirds;
  if (!(width >= 1 && width <= static_cast<double>(kLargestDim))) {
    fail(config.where(), ": block_ffn_dim_multiplier makes the feed-forward part ", width,
         " wide, expected 1 to ", kLargestDim);
  }
  const int64_t step = multiple ? in_range(*multiple, kLargestDim) : 256;
  out.hidden_dim = (static_cast<int64_t>(width) + step - 1) / step * step;
}

void parse_lfm2(const Json& config, ModelConfig& out) {
  parse_lfm2_layers(config, out);
  set_width(config, out);
  for (const char* key : {"block_dim", "conv_dim", "conv_dim_out"}) {
    check_second_spelling(config, key, static_cast<double>(out.dim));
  }
  check_second_spelling(config, "num_heads", static_cast<double>(out.n_heads));
  check_second_spelling(config, "block_norm_eps", out.norm_eps);
  check_second_spelling(config, "theta", out.ropes.front().theta);
}

std::span<const TensorRow> lfm2_tensors() {
  static const TensorRows rows = joined({lfm2_opening(), lfm2_mlp(), lfm2_ending()});
  return rows;
}

}  // namespace

void parse_lfm2_layers(const Json& config, ModelConfig& out) {
  check_types(config);
  out.block.qk_norm = QkNorm::per_head;
  if (const auto tied = config.find("tie_embedding")) out.tied_embeddings = tied->as_bool();
  parse_convolutions(config, 3, out);
}

void parse_convolutions(const Json& config, int64_t usual_width, ModelConfig& out) {
  const auto width = config.find("conv_L_cache");
  const bool bias = config.get_bool("conv_bias", false);
  bool any = false;
  for (int64_t i = 0; i < out.n_layers(); ++i) any = any || out.keeps_state(i);
  if (!any) return;
  RecurrenceConfig& state = out.recurrence.emplace();
  state.update = StateUpdate::none;
  state.norm = StateNorm::none;
  state.k_heads = state.v_heads = 1;
  state.k_dim = state.v_dim = out.dim;
  state.conv_width = width ? in_range(*width, kMostConvWidth) : usual_width;
  state.conv_bias = state.bias = state.out_bias = bias;
}

TensorRows lfm2_convolutions() {
  return {{"model.layers.{}.conv.in_proj", {state_k, state_gate, state_v}},
          {"model.layers.{}.conv.conv", {conv_v}},
          {"model.layers.{}.conv.out_proj", {state_out}}};
}

TensorRows lfm2_opening() {
  return joined({{{"model.embed_tokens", {embedding}},
                  {"model.layers.{}.operator_norm", {attn_norm}},
                  {"model.layers.{}.self_attn.q_proj", {q}},
                  {"model.layers.{}.self_attn.k_proj", {k}},
                  {"model.layers.{}.self_attn.v_proj", {v}},
                  {"model.layers.{}.self_attn.q_layernorm", {q_norm}},
                  {"model.layers.{}.self_attn.k_layernorm", {k_norm}},
                  {"model.layers.{}.self_attn.out_proj", {o}}},
                 lfm2_convolutions(),
                 {{"model.layers.{}.ffn_norm", {ffn_norm}}}});
}

TensorRows lfm2_mlp() {
  return {{"model.layers.{}.feed_forward.w1", {gate}},
          {"model.layers.{}.feed_forward.w3", {up}},
          {"model.layers.{}.feed_forward.w2", {down}}};
}

TensorRows lfm2_ending() {
  return {{"model.embedding_norm", {norm}}, {"lm_head", {lm_head}}};
}

Architecture lfm2() {
  return {.name = "Lfm2ForCausalLM",
          .model_type = "lfm2",
          .summary = "LFM2, dense",
          .states = true,
          .parse = parse_lfm2,
          .tensors = lfm2_tensors(),
          .activations = kSilu,
          .norm_eps = "norm_eps",
          .tied = true,
          .context = 128000,
          .hidden_dims = 1,
          .rope = {.theta = 1e6}};
}

}  // namespace fp8kv
