// Writes a small seeded model folder: what a test would otherwise need a download for.
//
//   ModelConfig config = test::tiny_config();
//   config.dtype = DType::bf16;
//   test::write_tiny_checkpoint(folder / "model", config, {.n_shards = 3});
//
// No tokenizer. Everything is a function of the config and the seed alone: the same tensor has the
// same values in every sharding, and other dtypes only round them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/tensor.h"

namespace fp8kv::test {

// LlamaForCausalLM in f32: 2 layers, dim 32, 4 heads over 2 KV heads of 8, hidden 48, vocabulary
// 64, 128 positions, untied. Change what the test is about, then pass it on.
ModelConfig tiny_config();

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

// Matrices are scaled so that activations stay near 1; norms are near 1; biases are within 0.5.
std::vector<TinyTensor> tiny_tensors(const ModelConfig& config, const TinyOptions& options = {});

// The config.json for it: every field of `config`, in the spelling of its architecture.
std::string tiny_config_json(const ModelConfig& config, const TinyOptions& options = {});

// Creates `folder` with config.json and the weights.
void write_tiny_checkpoint(const std::filesystem::path& folder, const ModelConfig& config,
                           const TinyOptions& options = {});

// Writes `tensors` in `dtype` as a checkpoint's weights: for a test that has changed some.
void write_tiny_weights(const std::filesystem::path& folder, const std::vector<TinyTensor>& tensors,
                        DType dtype, int n_shards = 1);

}  // namespace fp8kv::test
