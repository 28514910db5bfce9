// Writes a small seeded model folder, so that tests need no download.
//
//   test::TinyConfig config = test::tiny_config();
//   config.dtype = DType::bf16;
//   test::write_tiny_checkpoint(folder / "model", config, {.n_shards = 3});
//
// There is no tokenizer. Values depend only on the config and the seed. A tensor has the same
// values in every sharding, and other dtypes only round them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/numbers/tensor.h"

namespace fp8kv::test {

// A model whose layers are alike, except for their windows.
struct TinyConfig {
  std::string architecture;
  std::string model_type;
  DType dtype = DType::f16;
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  int64_t head_dim = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t vocab_size = 0;
  int64_t max_seq_len = 0;
  double norm_eps = 1e-5;
  RopeConfig rope;
  std::vector<RopeConfig> more_ropes;  // beside `rope`; no config.json has them or layer_ropes
  std::vector<int32_t> layer_ropes;    // empty: `rope` in all layers
  BlockConfig block;
  std::optional<ExpertsConfig> experts;  // in all layers except dense_layers
  std::vector<int64_t> dense_layers;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  int64_t window = 0;               // sliding window; 0 is none
  std::vector<bool> window_layers;  // empty: the window holds in every layer
  std::vector<int32_t> eos_ids;
  int32_t bos_id = -1;
  bool qk_norm_rotated = false;  // no config.json has it
};

inline bool has_experts(const TinyConfig& config, int64_t layer) {
  const auto& dense = config.dense_layers;
  return config.experts && std::find(dense.begin(), dense.end(), layer) == dense.end();
}

// LlamaForCausalLM in f32: 2 layers, dim 32, 4 heads over 2 KV heads of 8, hidden 48, vocabulary
// 64, 128 positions, untied. A test changes what it is about.
TinyConfig tiny_config();

struct TinyOptions {
  int n_shards = 1;  // 1: model.safetensors; more: shards and an index
  uint64_t seed = 1;
  bool new_spelling = false;     // `dtype` and `rope_parameters`, like transformers 5
  bool tied_as_lm_head = false;  // tied_embeddings: the one tensor is stored as lm_head.weight
};

// A tensor and its values in the checkpoint, already rounded to the model's dtype.
struct TinyTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
  std::optional<DType> dtype = {};  // if it differs from the model's
};

// Names of the norms after a layer's blocks: OLMo 2's, or for other models invented ones.
struct PostNormNames {
  const char* attention;
  const char* feed_forward;
};
inline PostNormNames post_norm_names(const std::string& architecture) {
  if (architecture == "Olmo2ForCausalLM") {
    return {"post_attention_layernorm", "post_feedforward_layernorm"};
  }
  return {"attn_post_norm", "ffn_post_norm"};
}

// The tensors for any BlockConfig, with Llama's names and post_norm_names.
// Matrices are scaled so that activations stay near 1; norms are near 1; biases are within 0.5.
std::vector<TinyTensor> tiny_tensors(const TinyConfig& config, const TinyOptions& options = {});

// The config.json with every field of `config`, in the spelling of its architecture.
std::string tiny_config_json(const TinyConfig& config, const TinyOptions& options = {});

// The ModelConfig that read_model_config makes of this config.json.
ModelConfig model_of(const TinyConfig& config);

// Creates `folder` with config.json and the weights.
void write_tiny_checkpoint(const std::filesystem::path& folder, const TinyConfig& config,
                           const TinyOptions& options = {});

// Writes `tensors` in `dtype` as a checkpoint's weights, for tests that changed some.
void write_tiny_weights(const std::filesystem::path& folder, const std::vector<TinyTensor>& tensors,
                        DType dtype, int n_shards = 1);

}  // namespace fp8kv::test
