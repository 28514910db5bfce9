#include "config/families/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "config/describe/describe_layers.h"
#include "config/describe/window_keys.h"
#include "config/families/experts_config.h"
#include "config/families/tensor_rows.h"
#include "config/values/config_values.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

// One switch controls the biases of q, k, v and o.
void set_attention_bias(const Json& config, const char* key, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool(key, false);
}

// Checks the window of Qwen's models, which starts at some layer or covers the listed layers. It
// needs a switch, which is off by default.
void check_qwen_window(const Json& config, const ModelConfig& model) {
  const bool used = config.get_bool("use_sliding_window", false);
  for (const LayerDescription& layer : model.layers) {
    if (used || layer.mixing != Mixing::window) continue;
    fail(mixing_member(config)->where(),
         ": has sliding_attention, but use_sliding_window is not true");
  }
  const bool windowed = config.has("sliding_window") || usual_window(config) > 0;
  if (used && windowed && !config.has("layer_types")) {
    config.at("max_window_layers");
  }
}

// Rounds like the models do, which store this number in their own dtype.
double rounded_to(DType dtype, double value) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(single));
  if (dtype == DType::f16) return f16_to_float(f16_from_float(single));
  return value;
}

// The cap under `key`. Null means no cap, and a missing key means the family's default.
double cap_or(const Json& config, const char* key, double otherwise) {
  return mentions(config, key) ? positive_or(config, key, 0.0) : otherwise;
}

// Reads hidden_size_per_layer_input and the related keys; missing keys get the family's defaults.
void parse_layer_inputs(const Json& config, ModelConfig& out) {
  const auto inputs = config.find("hidden_size_per_layer_input");
  const auto tokens = config.find("vocab_size_per_layer_input");
  out.layer_input_dim = inputs ? in_range(*inputs, 0, kLargestDim) : 256;
  if (out.layer_input_dim == 0) return;
  out.layer_token_multiplier =
      rounded_to(out.dtype, std::sqrt(static_cast<double>(out.layer_input_dim)));
  out.layer_vocab_size = tokens ? in_range(*tokens, kLargestDim) : 262144;
}

// Reads which share of each layer's gate is cut off. By default the first ten layers cut 95 %.
void parse_gate_cuts(const Json& config, ModelConfig& out) {
  const size_t n_layers = out.layers.size(), usual = n_layers > 10 ? 10 : 0;
  out.gate_cuts.assign(n_layers, 0.0);
  std::fill_n(out.gate_cuts.begin(), usual, 0.95);
  const auto listed = config.find("activation_sparsity_pattern");
  if (!listed) return;
  if (!listed->is_array() || listed->size() != n_layers) {
    fail(listed->where(), ": is ", listed->brief(), ", expected a number for each of ",
         count_of(n_layers, "layer"));
  }
  for (size_t i = 0; i < n_layers; ++i) {
    const double share = (*listed)[i].as_double();
    if (!(share >= 0 && share < 1)) {
      fail((*listed)[i].where(), ": is ", share, ", expected a share from 0 to less than 1");
    }
    out.gate_cuts[i] = share;
  }
}

}  // namespace

// Despite its name, no_rope_layers has a 1 for each layer that rotates.
std::vector<bool> rotating_layers(const Json& config, size_t n_layers) {
  std::vector<bool> rotates;
  const auto listed = config.find("no_rope_layers");
  const auto said = config.find("no_rope_layer_interval");  // counts if there is no list
  if (listed && listed->is_array() && listed->size() > 0) {
    if (listed->size() < n_layers) {
      fail(listed->where(), ": has ", count_of(listed->size(), "number"),
           ", expected one for each of ", count_of(n_layers, "layer"));
    }
    for (size_t i = 0; i < n_layers; ++i) rotates.push_back((*listed)[i].as_int() != 0);
    return rotates;
  }
  const int64_t interval = said ? in_range(*said, kMostLayers) : 4;
  for (size_t i = 0; i < n_layers; ++i) {
    rotates.push_back((static_cast<int64_t>(i) + 1) % interval != 0);
  }
  return rotates;
}

void parse_llama(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  out.mlp_bias = config.get_bool("mlp_bias", false);
}

void parse_mistral(const Json& config, ModelConfig& out) {
  if (!mentions(config, "sliding_window")) {
    throw Error(cat(config.where(), ": the key 'sliding_window' is missing"),
                "write \"sliding_window\": null when every token sees all before it");
  }
  const Mixing wanted = config.has("sliding_window") ? Mixing::window : Mixing::full;
  for (const LayerDescription& layer : out.layers) {
    if (layer.mixing == wanted) continue;
    fail(mixing_member(config)->where(),
         ": does not fit sliding_window, which is one for all layers of MistralForCausalLM");
  }
}

// Requires rope_parameters: without them transformers would stretch the rope by 16, which no file
// means.
void parse_ministral3(const Json& config, ModelConfig&) {
  config.at("rope_parameters");
}

void parse_qwen2(const Json& config, ModelConfig& out) {
  out.qkv_bias = true;
  check_qwen_window(config, out);
}

void parse_qwen3(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  out.block.qk_norm = QkNorm::per_head;
  check_qwen_window(config, out);
}

void parse_olmo2(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  out.block.norm_place = NormPlace::after;
  out.block.qk_norm = QkNorm::whole;
}

void parse_smollm3(const Json& config, ModelConfig& out) {
  parse_llama(config, out);
  const std::vector<bool> rotates = rotating_layers(config, out.layers.size());
  for (size_t i = 0; i < rotates.size(); ++i) {
    if (!rotates[i]) out.layer_ropes[i] = -1;
  }
}

void parse_granite(const Json& config, ModelConfig& out) {
  parse_llama(config, out);
  BlockConfig& block = out.block;
  block.embed_multiplier = positive_or(config, "embedding_multiplier", 1.0);
  block.residual_multiplier = positive_or(config, "residual_multiplier", 1.0);
  block.attention_scale = positive_or(config, "attention_multiplier", 1.0);
  block.logit_multiplier = 1 / positive_or(config, "logits_scaling", 1.0);
}

void parse_gemma(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  refuse_if_set(config, "use_bidirectional_attention", "attention to tokens that come later");
  out.block.norm_plus_one = true;
  out.block.embed_multiplier = rounded_to(out.dtype, std::sqrt(static_cast<double>(out.dim)));
}

void parse_gemma2(const Json& config, ModelConfig& out) {
  parse_gemma(config, out);
  out.block.norm_place = NormPlace::around;
  out.block.attention_scale = 1 / std::sqrt(positive_or(config, "query_pre_attn_scalar", 256.0));
  out.block.score_cap = cap_or(config, "attn_logit_softcapping", 50.0);
  out.block.logit_cap = cap_or(config, "final_logit_softcapping", 30.0);
}

void parse_gemma3(const Json& config, ModelConfig& out) {
  parse_gemma2(config, out);
  out.block.qk_norm = QkNorm::per_head;
  out.block.score_cap = 0.0;  // transformers reads the key without capping; a value is refused
  out.block.logit_cap = cap_or(config, "final_logit_softcapping", 0.0);
}

void parse_gemma3n(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  refuse_if_set(config, "use_bidirectional_attention", "attention to tokens that come later");
  BlockConfig& block = out.block;
  block.embed_multiplier = rounded_to(out.dtype, std::sqrt(static_cast<double>(out.dim)));
  block.norm_place = NormPlace::around;
  block.qk_norm = QkNorm::per_head;
  block.v_norm = true;
  block.attention_scale = 1.0;
  block.logit_cap = cap_or(config, "final_logit_softcapping", 30.0);
  parse_layer_inputs(config, out);
  if (out.layer_input_dim == 0) {
    fail(config.at("hidden_size_per_layer_input").where(), ": is 0, expected 1 or more");
  }
  parse_gate_cuts(config, out);
  const auto rank = config.find("laurel_rank");
  out.laurel_rank = rank ? in_range(*rank, kLargestDim) : 64;
  const auto streams = config.find("altup_num_inputs"), active = config.find("altup_active_idx");
  out.streams.emplace();
  out.streams->count = streams ? in_range(*streams, 2, kMostStreams) : 4;
  out.streams->active = active ? in_range(*active, 0, out.streams->count - 1) : 0;
  out.streams->scaled = is_on(config, "altup_correct_scale");
  config.find("altup_coef_clip");  // matters for training alone
}

void parse_gemma4_layers(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  // "vision" concerns tokens of images alone.
  if (config.get_string("use_bidirectional_attention", "") != "vision") {
    refuse_if_set(config, "use_bidirectional_attention", "attention to tokens that come later");
  }
  if (out.layers.back().mixing != Mixing::full) {
    const auto member = mixing_member(config);
    fail((member ? *member : config).where(),
         ": gives the last layer a window, which transformers would take away, expected none");
  }
  BlockConfig& block = out.block;
  block.embed_multiplier = rounded_to(out.dtype, std::sqrt(static_cast<double>(out.dim)));
  block.norm_place = NormPlace::around;
  block.qk_norm = QkNorm::per_head;
  block.v_norm = block.layer_scale = true;
  block.attention_scale = 1.0;
  block.logit_cap = cap_or(config, "final_logit_softcapping", 0.0);
  if (config.get_bool("use_double_wide_mlp", false)) {
    for (int64_t i = 0; i < out.n_layers(); ++i) {
      out.hidden_dims.push_back(out.writes_cache(i) ? out.hidden_dim : 2 * out.hidden_dim);
    }
  }
  parse_experts(config, {{"num_experts"}, "moe_intermediate_size", "top_k_experts"}, out);
  if (out.experts) {
    out.experts->routing.normalise = true;
    out.experts->beside_dense = out.experts->router_norm = out.experts->factors = true;
  }
}

void parse_gemma4(const Json& config, ModelConfig& out) {
  parse_gemma4_layers(config, out);
  parse_layer_inputs(config, out);
}

void parse_phi(const Json& config, ModelConfig& out) {
  if (config.get_bool("qk_layernorm", false)) {
    out.block.qk_norm = QkNorm::per_head;
    out.block.qk_norm_bias = true;
  }
  out.qkv_bias = out.o_bias = out.mlp_bias = true;
  BlockConfig& block = out.block;
  block.norm = NormKind::layer;
  block.norm_bias = block.head_bias = true;
  block.parallel = block.shared_norm = true;
  block.gated = false;
}

void parse_phi3(const Json&, ModelConfig&) {}

void parse_glm(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
}

void parse_glm4(const Json& config, ModelConfig& out) {
  parse_glm(config, out);
  out.block.norm_place = NormPlace::around;
}

void parse_cohere(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "attention_bias", out);
  BlockConfig& block = out.block;
  if (config.get_bool("use_qk_norm", false)) block.qk_norm = QkNorm::own_heads;
  block.norm = NormKind::layer;
  block.parallel = block.shared_norm = true;
  block.logit_multiplier = positive_or(config, "logit_scale", 0.0625);
}

// Layers with full attention do not rotate.
void parse_cohere2(const Json& config, ModelConfig& out) {
  refuse_if_set(config, "use_qk_norm", "a norm of Q and K in this architecture");
  parse_cohere(config, out);
  for (size_t i = 0; i < out.layers.size(); ++i) {
    if (out.layers[i].mixing == Mixing::full) out.layer_ropes[i] = -1;
  }
}

void parse_stablelm(const Json& config, ModelConfig& out) {
  if (config.get_bool("qk_layernorm", false)) {
    out.block.qk_norm = QkNorm::own_heads;
    out.tensors = stablelm_head_norm_tensors();
  }
  out.qkv_bias = config.get_bool("use_qkv_bias", false);
  BlockConfig& block = out.block;
  block.norm = NormKind::layer;
  block.norm_bias = true;
  block.parallel = block.shared_norm = config.get_bool("use_parallel_residual", false);
}

void parse_starcoder2(const Json& config, ModelConfig& out) {
  set_attention_bias(config, "use_bias", out);
  if (!config.has("use_bias")) out.qkv_bias = out.o_bias = true;
  out.mlp_bias = out.qkv_bias;
  out.block.norm = NormKind::layer;
  out.block.norm_bias = true;
  out.block.gated = false;
}

}  // namespace fp8kv
