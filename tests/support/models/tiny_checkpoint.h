// Writes a small seeded model folder: what a test would otherwise need a download for.
//
//   test::TinyConfig config = test::tiny_config();
//   config.dtype = DType::bf16;
//   test::write_tiny_checkpoint(folder / "model", config, {.n_shards = 3});
//
// No tokenizer. Everything is a function of the config and the seed alone: the same tensor has the
// same values in every sharding, and other dtypes only round them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/tensor.h"

namespace fp8kv::test {

// What a test can say of a model whose layers are alike, but for their windows.
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
  std::vector<RopeConfig> more_ropes;  // beside it; no config.json says so, nor of the next
  std::vector<int32_t> layer_ropes;    // empty: `rope` in all layers
  BlockConfig block;
  std::optional<ExpertsConfig> experts;  // of all layers but dense_layers
  std::vector<int64_t> dense_layers;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  int64_t window = 0;               // sliding window; 0 is none
  std::vector<bool> window_layers;  // empty: the window holds in every layer
  std::vector<int32_t> eos_ids;
  int32_t bos_id = -1;
};

inline bool has_experts(const TinyConfig& config, int64_t layer) {
  const auto& dense = config.dense_layers;
  return config.experts && std::find(dense.begin(), dense.end(), layer) == dense.end();
}

// LlamaForCausalLM in f32: 2 layers, dim 32, 4 heads over 2 KV heads of 8, hidden 48, vocabulary
// 64, 128 positions, untied. Change what the test is about, then pass it on.
TinyConfig tiny_config();

struct TinyOptions {
  int n_shards = 1;  // 1: model.safetensors; more: shards and an index
  uint64_t seed = 1;
  bool new_spelling = false;     // `dtype` and `rope_parameters`, as transformers 5 writes them
  bool tied_as_lm_head = false;  // tied_embeddings: the one tensor is stored as lm_head.weight
};

// One tensor with the values that the checkpoint holds, already rounded to the model's dtype.
struct TinyTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// What the norms after a layer's blocks are called: as in OLMo 2, else names that no model has.
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

// Those of any BlockConfig: Llama's names, and post_norm_names.
// Matrices are scaled so that activations stay near 1; norms are near 1; biases are within 0.5.
std::vector<TinyTensor> tiny_tensors(const TinyConfig& config, const TinyOptions& options = {});

// The config.json for it: every field of `config`, in the spelling of its architecture.
std::string tiny_config_json(const TinyConfig& config, const TinyOptions& options = {});

// The model that its config.json describes.
ModelConfig model_of(const TinyConfig& config);

// Creates `folder` with config.json and the weights.
void write_tiny_checkpoint(const std::filesystem::path& folder, const TinyConfig& config,
                           const TinyOptions& options = {});

// Writes `tensors` in `dtype` as a checkpoint's weights: for a test that has changed some.
void write_tiny_weights(const std::filesystem::path& folder, const std::vector<TinyTensor>& tensors,
                        DType dtype, int n_shards = 1);

}  // namespace fp8kv::test
