#include "checkpoint/architectures.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "base/error.h"
#include "checkpoint/config_parts.h"

namespace fp8kv {
namespace {

// Far above any model, far below what could overflow a product of two.
constexpr int64_t kLargestDim = int64_t(1) << 28;
constexpr int64_t kMostLayers = int64_t(1) << 16;
constexpr int64_t kLongestContext = INT32_MAX;

int64_t in_range(const Json& number, int64_t most) {
  const int64_t value = number.as_int();
  if (value < 1 || value > most) {
    fail(number.where(), ": is ", number.brief(), ", expected 1 to ", most);
  }
  return value;
}

// The first of the spellings that the config has.
std::optional<Json> find_any(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const auto found = config.find(key)) return found;
  }
  return std::nullopt;
}

// Like find_any, but an error names the first, the usual spelling.
Json at_any(const Json& config, std::initializer_list<const char*> keys) {
  const auto found = find_any(config, keys);
  return found ? *found : config.at(*keys.begin());
}

// Unlike Json::find, true for a key whose value is null.
bool mentions(const Json& object, std::string_view key) {
  for (size_t i = 0; i < object.size(); ++i) {
    if (object.key(i) == key) return true;
  }
  return false;
}

std::string architecture_name(const Json& config) {
  const auto names = config.find("architectures");
  if (!names || names->size() == 0) return "";
  return (*names)[0].as_string();
}

std::string supported() {
  std::vector<std::string> rows;
  for (const Architecture& row : architectures())
    rows.push_back(cat(row.name, " (", row.summary, ")"));
  return "supported are " + join(rows);
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

const Architecture& architecture_of(const Json& config) {
  const std::string name = architecture_name(config);
  if (name.empty()) {
    throw Error(cat(config.where(), ": names no architecture under 'architectures'"), supported());
  }
  std::string hint;
  for (const Architecture& row : architectures()) {
    if (row.name == name) return row;
    // Only case is taken for a slip: Qwen3 is near Qwen2 in letters, and another model.
    if (same_ignoring_case(row.name, name)) hint = cat(" (did you mean ", quote(row.name), "?)");
  }
  if (hint.empty() && config.has("auto_map")) {
    hint = ", and it brings code of its own (auto_map), which is never run here";
  }
  throw Error(cat(config.at("architectures").where(), ": ", quote(name), " is not supported", hint),
              supported());
}

DType parse_dtype(const Json& config) {
  const auto name = find_any(config, {"dtype", "torch_dtype"});
  if (!name) return DType::f32;
  const auto dtype = dtype_from_torch_name(name->as_string());
  if (!dtype || !is_compute_dtype(*dtype)) {
    fail(name->where(), ": is ", quote(name->as_string()),
         ", expected float32, float16 or bfloat16");
  }
  return *dtype;
}

void check_activation(const Json& config) {
  const auto name = config.find("hidden_act");
  if (!name || name->as_string() == "silu" || name->as_string() == "swish") return;
  throw Error(
      cat(name->where(), ": the activation ", quote(name->as_string()), " is not supported"),
      "supported is 'silu'");
}

void check_no_softcapping(const Json& config) {
  if (const auto cap = find_any(config, {"attn_logit_softcapping", "final_logit_softcapping"})) {
    fail(cap->where(), ": is ", cap->brief(), ": capping of logits is not supported");
  }
}

// What `layer_types` says of each layer, true for the window; nullopt when it is not there.
std::optional<std::vector<bool>> parse_layer_types(const Json& config, int64_t n_layers) {
  const auto types = config.find("layer_types");
  if (!types) return std::nullopt;
  if (!types->is_array() || types->size() != static_cast<size_t>(n_layers)) {
    fail(types->where(), ": is ", types->brief(), ", expected an array of ", n_layers,
         " layer types");
  }
  std::vector<bool> windowed;
  for (size_t i = 0; i < types->size(); ++i) {
    const std::string type = (*types)[i].as_string();
    if (type != "full_attention" && type != "sliding_attention") {
      throw Error(cat((*types)[i].where(), ": the layer type ", quote(type), " is not supported"),
                  "supported are 'full_attention' and 'sliding_attention'");
    }
    windowed.push_back(type == "sliding_attention");
  }
  return windowed;
}

// A window that holds in all layers or in none needs no list of layers.
void set_window(int64_t window, const std::vector<bool>& layers, ModelConfig& out) {
  if (std::find(layers.begin(), layers.end(), true) == layers.end()) return;
  out.window = window;
  if (std::find(layers.begin(), layers.end(), false) != layers.end()) out.window_layers = layers;
}

void parse_llama(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.mlp_bias = config.get_bool("mlp_bias", false);
}

void parse_mistral(const Json& config, ModelConfig& out) {
  if (!mentions(config, "sliding_window")) {
    throw Error(cat(config.where(), ": the key 'sliding_window' is missing"),
                "write \"sliding_window\": null when every token sees all before it");
  }
  const auto window = config.find("sliding_window");
  if (window) out.window = in_range(*window, kLongestContext);
  const auto types = parse_layer_types(config, out.n_layers);
  if (types && *types != std::vector<bool>(types->size(), window.has_value())) {
    fail(config.at("layer_types").where(),
         ": does not fit sliding_window, which is one for all "
         "layers of MistralForCausalLM");
  }
}

// The window of Qwen's models: from some layer on, or in the layers that are listed.
void parse_qwen_window(const Json& config, ModelConfig& out) {
  const bool used = config.get_bool("use_sliding_window", false);
  const auto size = config.find("sliding_window");
  const int64_t window = used && size ? in_range(*size, kLongestContext) : 0;
  if (const auto types = parse_layer_types(config, out.n_layers)) {
    const bool wanted = std::find(types->begin(), types->end(), true) != types->end();
    if (wanted && window == 0) {
      fail(config.at("layer_types").where(), ": has sliding_attention, but ",
           used ? "sliding_window is not given" : "use_sliding_window is not true");
    }
    set_window(window, *types, out);
    return;
  }
  if (window == 0) return;
  const Json first = config.at("max_window_layers");
  if (first.as_int() < 0) fail(first.where(), ": is ", first.brief(), ", expected 0 or more");
  std::vector<bool> windowed;
  for (int64_t i = 0; i < out.n_layers; ++i) windowed.push_back(i >= first.as_int());
  set_window(window, windowed, out);
}

void parse_qwen2(const Json& config, ModelConfig& out) {
  out.qkv_bias = true;
  parse_qwen_window(config, out);
}

void parse_qwen3(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.qk_norm = true;
  parse_qwen_window(config, out);
}

const std::array<Architecture, 4> kArchitectures = {{
    {"LlamaForCausalLM", "Llama 1, 2, 3.x and what shares their form", parse_llama},
    {"MistralForCausalLM", "Mistral, with or without sliding window", parse_mistral},
    {"Qwen2ForCausalLM", "Qwen 2, 2.5", parse_qwen2},
    {"Qwen3ForCausalLM", "Qwen 3, dense", parse_qwen3},
}};

}  // namespace

std::string TensorNames::in_layer(const std::string& pattern, int64_t layer) {
  const size_t at = pattern.find("{}");
  FP8KV_ASSERT(at != pattern.npos);
  return cat(std::string_view(pattern).substr(0, at), layer,
             std::string_view(pattern).substr(at + 2));
}

std::span<const Architecture> architectures() {
  return kArchitectures;
}

const TensorNames& tensor_names() {
  static const TensorNames names = {
      .embed = "model.embed_tokens",
      .attn_norm = "model.layers.{}.input_layernorm",
      .q = "model.layers.{}.self_attn.q_proj",
      .k = "model.layers.{}.self_attn.k_proj",
      .v = "model.layers.{}.self_attn.v_proj",
      .q_norm = "model.layers.{}.self_attn.q_norm",
      .k_norm = "model.layers.{}.self_attn.k_norm",
      .o = "model.layers.{}.self_attn.o_proj",
      .ffn_norm = "model.layers.{}.post_attention_layernorm",
      .gate = "model.layers.{}.mlp.gate_proj",
      .up = "model.layers.{}.mlp.up_proj",
      .down = "model.layers.{}.mlp.down_proj",
      .norm = "model.norm",
      .lm_head = "lm_head",
  };
  return names;
}

ModelConfig parse_model_shape(const Json& config) {
  const auto wrapped = config.find("text_config");
  const bool inside = wrapped && !find_any(config, {"num_hidden_layers", "n_layer", "num_layers"});
  const Json text = inside ? *wrapped : config;
  if (const auto rank = text.find("kv_lora_rank")) {
    fail(rank->where(), ": attention through a latent vector (MLA) has no K and V per head");
  }
  ModelConfig out;
  out.architecture = architecture_name(config);
  out.model_type = config.get_string("model_type", "");
  out.n_layers =
      in_range(at_any(text, {"num_hidden_layers", "n_layer", "num_layers"}), kMostLayers);
  out.n_heads = in_range(at_any(text, {"num_attention_heads", "n_head", "num_heads"}), kLargestDim);
  const auto kv_heads = find_any(text, {"num_key_value_heads", "num_kv_heads"});
  out.n_kv_heads = kv_heads ? in_range(*kv_heads, kLargestDim) : out.n_heads;
  if (out.n_heads % out.n_kv_heads != 0) {
    fail(kv_heads->where(), ": is ", out.n_kv_heads, ", which does not divide the ", out.n_heads,
         " attention heads");
  }
  const auto dim = find_any(text, {"hidden_size", "n_embd", "d_model"});
  if (dim) out.dim = in_range(*dim, kLargestDim);
  if (const auto head_dim = text.find("head_dim")) {
    out.head_dim = in_range(*head_dim, kLargestDim);
  } else {
    out.dim = in_range(at_any(text, {"hidden_size", "n_embd", "d_model"}), kLargestDim);
    if (out.dim % out.n_heads != 0) {
      fail(dim->where(), ": is ", out.dim, ", which the ", out.n_heads,
           " attention heads do not divide, and there is no head_dim");
    }
    out.head_dim = out.dim / out.n_heads;
  }
  if (const auto context = find_any(text, {"max_position_embeddings", "n_positions"})) {
    out.max_seq_len = in_range(*context, kLongestContext);
  }
  return out;
}

ModelConfig parse_model_config(const Json& config) {
  const Architecture& architecture = architecture_of(config);
  ModelConfig out = parse_model_shape(config);
  check_not_quantized(config, out);
  out.dim = in_range(config.at("hidden_size"), kLargestDim);
  out.hidden_dim = in_range(config.at("intermediate_size"), kLargestDim);
  out.vocab_size = in_range(config.at("vocab_size"), kLargestDim);
  out.max_seq_len = in_range(config.at("max_position_embeddings"), kLongestContext);
  if (out.head_dim % 2 != 0) {
    fail(config.where(), ": has heads of ", out.head_dim,
         " elements, expected an even number, since they are rotated in pairs");
  }
  const Json eps = config.at("rms_norm_eps");
  out.norm_eps = eps.as_double();
  if (!(out.norm_eps > 0 && out.norm_eps < 1)) {
    fail(eps.where(), ": is ", eps.brief(), ", expected a small positive number");
  }
  check_activation(config);
  check_no_softcapping(config);
  out.rope = parse_rope(config);
  if (out.rope.scaling == RopeScaling::yarn) {
    // Many leave max_position_embeddings at what the model was trained with.
    const double longest = out.rope.original_context * out.rope.factor;
    if (longest > kLongestContext) fail(config.where(), ": its rope reaches to position ", longest);
    out.max_seq_len = std::max(out.max_seq_len, static_cast<int64_t>(longest));
  }
  out.dtype = parse_dtype(config);
  out.tied_embeddings = config.get_bool("tie_word_embeddings", false);
  if (const auto ids = config.find("eos_token_id")) out.eos_ids = parse_token_ids(*ids);
  if (const auto id = config.find("bos_token_id")) out.bos_id = parse_token_id(*id);
  architecture.parse(config, out);
  return out;
}

}  // namespace fp8kv
