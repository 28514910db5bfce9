#include "support/models/tiny_checkpoint.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "config/parse_model_config.h"
#include "core/numbers/half.h"
#include "formats/safetensors.h"
#include "json/json.h"

namespace fp8kv::test {
namespace fs = std::filesystem;
namespace {

uint16_t half_code(float value, DType dtype) {
  return dtype == DType::bf16 ? bf16_from_float(value) : f16_from_float(value);
}

float rounded(float value, DType dtype) {
  if (dtype == DType::f32) return value;
  const uint16_t code = half_code(value, dtype);
  return dtype == DType::bf16 ? bf16_to_float(code) : f16_to_float(code);
}

// FNV-1a. Makes a tensor's values depend only on its own name.
uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

class Maker {
 public:
  Maker(DType dtype, uint64_t seed) : dtype_(dtype), seed_(seed) {}

  // Values are uniform in center +- reach.
  void add(const std::string& name, const Shape& shape, double center, double reach) {
    Rng rng(seed_ ^ hash_of(name));
    TinyTensor tensor{name, shape, {}};
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const double value = center + reach * (2 * rng.uniform() - 1);
      tensor.values.push_back(rounded(static_cast<float>(value), dtype_));
    }
    tensors.push_back(std::move(tensor));
  }
  // Variance 1 / in_dim keeps the scale of activations.
  void matrix(const std::string& name, int64_t out_dim, int64_t in_dim) {
    add(name + ".weight", {out_dim, in_dim}, 0, std::sqrt(3.0 / static_cast<double>(in_dim)));
  }
  void norm(const std::string& name, int64_t dim) { add(name + ".weight", {dim}, 1, 0.25); }
  void norm(const std::string& name, const TinyConfig& config) {
    add(name + ".weight", {config.dim}, config.block.norm_plus_one ? 0.5 : 1, 0.25);
    if (config.block.norm_bias) add(name + ".bias", {config.dim}, 0, 0.5);
  }
  void linear(const std::string& name, int64_t out_dim, int64_t in_dim, bool bias) {
    matrix(name, out_dim, in_dim);
    if (bias) add(name + ".bias", {out_dim}, 0, 0.5);
  }

  // The experts of a layer. `at` is the start of their names.
  void experts(const std::string& at, const TinyConfig& config) {
    const ExpertsConfig& experts = *config.experts;
    const bool mixtral = config.architecture == "MixtralForCausalLM";
    const std::string part = at + (mixtral ? "block_sparse_moe." : "mlp.");
    matrix(part + "gate", experts.choices(), config.dim);
    if (experts.choice_bias) {
      add(part + "gate.e_score_correction_bias", {experts.choices()}, 0, 0.5);
    }
    for (int64_t i = 0; i < experts.count; ++i) {
      const std::string expert = cat(part, "experts.", i, ".");
      matrix(expert + (mixtral ? "w1" : "gate_proj"), experts.hidden_dim, config.dim);
      matrix(expert + (mixtral ? "w3" : "up_proj"), experts.hidden_dim, config.dim);
      matrix(expert + (mixtral ? "w2" : "down_proj"), config.dim, experts.hidden_dim);
    }
    if (experts.shared_hidden_dim == 0) return;
    matrix(part + "shared_expert.gate_proj", experts.shared_hidden_dim, config.dim);
    matrix(part + "shared_expert.up_proj", experts.shared_hidden_dim, config.dim);
    matrix(part + "shared_expert.down_proj", config.dim, experts.shared_hidden_dim);
    if (experts.shared_gated) matrix(part + "shared_expert_gate", 1, config.dim);
  }

  std::vector<TinyTensor> tensors;

 private:
  DType dtype_;
  uint64_t seed_;
};

std::string tensor_bytes(const TinyTensor& tensor, DType dtype) {
  std::string bytes(tensor.values.size() * dtype_bytes(dtype), '\0');
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (dtype == DType::f32) {
      std::memcpy(bytes.data() + 4 * i, &tensor.values[i], 4);
    } else if (dtype == DType::i64) {
      const auto number = static_cast<int64_t>(tensor.values[i]);
      std::memcpy(bytes.data() + 8 * i, &number, 8);
    } else {
      const uint16_t code = half_code(tensor.values[i], dtype);
      std::memcpy(bytes.data() + 2 * i, &code, 2);
    }
  }
  return bytes;
}

void write_shard(const fs::path& path, std::span<const TinyTensor> tensors, DType dtype) {
  std::vector<std::string> data;
  for (const TinyTensor& tensor : tensors)
    data.push_back(tensor_bytes(tensor, tensor.dtype.value_or(dtype)));
  std::vector<TensorToWrite> items;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data[i].data());
    const DType of_tensor = tensors[i].dtype.value_or(dtype);
    items.push_back({tensors[i].name, ConstTensorView(bytes, of_tensor, tensors[i].shape)});
  }
  std::ofstream(path, std::ios::binary) << safetensors_bytes(items, {{"format", "pt"}});
}

void write_rope(JsonWriter& json, const RopeConfig& rope, bool new_spelling) {
  if (!new_spelling) json.member("rope_theta", rope.theta);
  json.key(new_spelling ? "rope_parameters" : "rope_scaling");
  if (!new_spelling && rope.scaling == RopeScaling::none) {
    json.null();
    return;
  }
  json.begin_object();
  if (new_spelling) json.member("rope_theta", rope.theta);
  switch (rope.scaling) {
    case RopeScaling::none:
      json.member("rope_type", "default");
      break;
    case RopeScaling::linear:
      json.member("rope_type", "linear").member("factor", rope.factor);
      break;
    case RopeScaling::llama3:
      json.member("rope_type", "llama3")
          .member("factor", rope.factor)
          .member("low_freq_factor", rope.low_freq_factor)
          .member("high_freq_factor", rope.high_freq_factor)
          .member("original_max_position_embeddings", static_cast<int64_t>(rope.original_context));
      break;
    case RopeScaling::yarn:
      json.member("rope_type", "yarn")
          .member("factor", rope.factor)
          .member("original_max_position_embeddings", rope.original_context)
          .member("beta_fast", rope.beta_fast)
          .member("beta_slow", rope.beta_slow)
          .member("truncate", rope.truncate)
          .member("attention_factor", rope.attention_factor);
      break;
    case RopeScaling::longrope:
      FP8KV_ASSERT(false);  // tests use goldens for this scaling
  }
  json.end_object();
}

void write_window(JsonWriter& json, const TinyConfig& config) {
  if (config.window > 0) {
    json.member("sliding_window", config.window);
  } else {
    json.key("sliding_window").null();
  }
  if (config.architecture == "MistralForCausalLM" || config.architecture == "MixtralForCausalLM") {
    return;
  }
  json.member("use_sliding_window", config.window > 0);
  if (config.window_layers.empty()) {
    json.member("max_window_layers", 0);
    return;
  }
  json.key("layer_types").begin_array();
  for (const bool windowed : config.window_layers) {
    json.value(windowed ? "sliding_attention" : "full_attention");
  }
  json.end_array();
}

void write_experts(JsonWriter& json, const TinyConfig& config) {
  const ExpertsConfig& experts = *config.experts;
  const Routing& routing = experts.routing;
  const bool mixtral = config.architecture == "MixtralForCausalLM";
  const bool granite = config.architecture == "GraniteMoeForCausalLM";
  json.member(mixtral || granite ? "num_local_experts" : "num_experts", experts.count);
  json.member("num_experts_per_tok", routing.per_token);
  FP8KV_ASSERT(!experts.choice_bias);
  FP8KV_ASSERT(routing.score == (granite ? RouterScore::softmax_of_chosen : RouterScore::softmax));
  if (mixtral || granite) {
    FP8KV_ASSERT(experts.hidden_dim == config.hidden_dim && routing.normalise == mixtral);
    return;
  }
  json.member("moe_intermediate_size", experts.hidden_dim);
  json.member("norm_topk_prob", routing.normalise);
  json.key("mlp_only_layers").begin_array();
  for (const int64_t layer : config.dense_layers) json.value(layer);
  json.end_array();
  if (experts.shared_hidden_dim == 0) return;
  FP8KV_ASSERT(experts.shared_gated);
  json.member("shared_expert_intermediate_size", experts.shared_hidden_dim);
}

}  // namespace

TinyConfig tiny_config() {
  TinyConfig config;
  config.architecture = "LlamaForCausalLM";
  config.model_type = "llama";
  config.dtype = DType::f32;
  config.dim = 32;
  config.hidden_dim = 48;
  config.head_dim = 8;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.vocab_size = 64;
  config.max_seq_len = 128;
  config.eos_ids = {2};
  config.bos_id = 1;
  return config;
}

std::vector<TinyTensor> tiny_tensors(const TinyConfig& config, const TinyOptions& options) {
  Maker make(config.dtype, options.seed);
  const int64_t q_dim = config.n_heads * config.head_dim;
  const int64_t kv_dim = config.n_kv_heads * config.head_dim;
  const BlockConfig& block = config.block;
  const bool normed_before = norms_input(block.norm_place);
  const PostNormNames post_norms = post_norm_names(config.architecture);
  const bool embed_stored = !(config.tied_embeddings && options.tied_as_lm_head);
  if (embed_stored) {
    make.add("model.embed_tokens.weight", {config.vocab_size, config.dim}, 0, std::sqrt(3.0));
  }
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const std::string at = cat("model.layers.", layer, ".");
    if (normed_before) make.norm(at + "input_layernorm", config);
    make.linear(at + "self_attn.q_proj", q_dim, config.dim, config.qkv_bias);
    make.linear(at + "self_attn.k_proj", kv_dim, config.dim, config.qkv_bias);
    make.linear(at + "self_attn.v_proj", kv_dim, config.dim, config.qkv_bias);
    if (block.qk_norm != QkNorm::none) {
      const bool whole = block.qk_norm == QkNorm::whole;
      make.norm(at + "self_attn.q_norm", whole ? q_dim : config.head_dim);
      make.norm(at + "self_attn.k_norm", whole ? kv_dim : config.head_dim);
    }
    if (block.differential) {
      for (const char* each : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"}) {
        make.add(cat(at, "self_attn.", each), {config.head_dim}, 0, 0.7);
      }
    }
    make.linear(at + "self_attn.o_proj", config.dim, q_dim, config.o_bias);
    if (norms_behind(block.norm_place)) {
      make.norm(at + post_norms.attention, config);
      make.norm(at + post_norms.feed_forward, config);
    }
    if (normed_before && !block.shared_norm) make.norm(at + "post_attention_layernorm", config);
    if (has_experts(config, layer)) {
      if (config.experts->post_norm) make.norm(at + post_norms.feed_forward, config);
      make.experts(at, config);
      if (!config.experts->shortcut) continue;
    }
    if (block.gated) {
      make.linear(at + "mlp.gate_proj", config.hidden_dim, config.dim, config.mlp_bias);
    }
    make.linear(at + "mlp.up_proj", config.hidden_dim, config.dim, config.mlp_bias);
    make.linear(at + "mlp.down_proj", config.dim, config.hidden_dim, config.mlp_bias);
  }
  if (block.norm_place != NormPlace::after_add) make.norm("model.norm", config);
  if (!config.tied_embeddings || options.tied_as_lm_head) {
    make.matrix("lm_head", config.vocab_size, config.dim);
  }
  if (block.head_bias) make.add("lm_head.bias", {config.vocab_size}, 0, 0.5);
  return make.tensors;
}

std::string tiny_config_json(const TinyConfig& config, const TinyOptions& options) {
  JsonWriter json;
  json.begin_object();
  const std::vector<std::string> architectures = {config.architecture};
  json.member("architectures", std::span<const std::string>(architectures));
  json.member("model_type", config.model_type);
  json.member(options.new_spelling ? "dtype" : "torch_dtype", torch_name(config.dtype));
  json.member("hidden_size", config.dim).member("intermediate_size", config.hidden_dim);
  json.member("head_dim", config.head_dim).member("num_hidden_layers", config.n_layers);
  json.member("num_attention_heads", config.n_heads);
  json.member("num_key_value_heads", config.n_kv_heads);
  json.member("vocab_size", config.vocab_size);
  json.member("max_position_embeddings", config.max_seq_len);
  json.member("rms_norm_eps", config.norm_eps).member("hidden_act", "silu");
  json.member("tie_word_embeddings", config.tied_embeddings);
  const bool qwen3 = config.architecture.starts_with("Qwen3");
  const bool olmo2 = config.architecture == "Olmo2ForCausalLM";
  const bool olmoe = config.architecture == "OlmoeForCausalLM";
  FP8KV_ASSERT(config.block.qk_norm == (qwen3            ? QkNorm::per_head
                                        : olmo2 || olmoe ? QkNorm::whole
                                                         : QkNorm::none));
  FP8KV_ASSERT(config.block.norm_place == (olmo2 ? NormPlace::after : NormPlace::before));
  if (config.architecture == "LlamaForCausalLM" || qwen3 || olmo2) {
    // These architectures have one switch for the biases of q, k, v and o.
    FP8KV_ASSERT(config.qkv_bias == config.o_bias);
    json.member("attention_bias", config.qkv_bias);
  } else {
    FP8KV_ASSERT(!config.o_bias);
    FP8KV_ASSERT(config.qkv_bias == config.architecture.starts_with("Qwen2"));
  }
  if (config.experts) write_experts(json, config);
  if (config.architecture == "LlamaForCausalLM") {
    json.member("mlp_bias", config.mlp_bias);
  } else {
    FP8KV_ASSERT(!config.mlp_bias);
    if (!olmo2) write_window(json, config);
  }
  write_rope(json, config.rope, options.new_spelling);
  if (config.bos_id >= 0) json.member("bos_token_id", int{config.bos_id});
  json.key("eos_token_id").begin_array();
  for (const int32_t id : config.eos_ids) json.value(int{id});
  json.end_array();
  return json.end_object().text();
}

ModelConfig model_of(const TinyConfig& config) {
  return parse_model_config(Json::parse(tiny_config_json(config), "config.json"));
}

void write_tiny_weights(const fs::path& folder, const std::vector<TinyTensor>& tensors, DType dtype,
                        int n_shards) {
  if (n_shards == 1) {
    write_shard(folder / "model.safetensors", tensors, dtype);
    return;
  }
  uint64_t total_bytes = 0;
  JsonWriter json;
  for (const TinyTensor& tensor : tensors) {
    total_bytes += tensor.values.size() * dtype_bytes(tensor.dtype.value_or(dtype));
  }
  json.begin_object().key("metadata").begin_object().member("total_size", total_bytes);
  json.end_object().key("weight_map").begin_object();
  const auto shards = static_cast<size_t>(n_shards);
  for (size_t shard = 0; shard < shards; ++shard) {
    const size_t begin = tensors.size() * shard / shards;
    const size_t end = tensors.size() * (shard + 1) / shards;
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
    write_shard(folder / name, std::span(tensors).subspan(begin, end - begin), dtype);
    for (size_t i = begin; i < end; ++i) json.member(tensors[i].name, name);
  }
  json.end_object().end_object();
  std::ofstream(folder / "model.safetensors.index.json") << json.text();
}

void write_tiny_checkpoint(const fs::path& folder, const TinyConfig& config,
                           const TinyOptions& options) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << tiny_config_json(config, options);
  write_tiny_weights(folder, tiny_tensors(config, options), config.dtype, options.n_shards);
}

}  // namespace fp8kv::test
