// What a model is, in numbers and switches, independent of how its config.json spells it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace fp8kv {

enum class RopeScaling { none, linear, llama3, yarn };

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;             // linear, llama3, yarn
  double low_freq_factor = 1.0;    // llama3
  double high_freq_factor = 4.0;   // llama3
  double original_context = 8192;  // llama3, yarn: original_max_position_embeddings
  double beta_fast = 32.0;         // yarn: pairs that turn more often in that context are kept
  double beta_slow = 1.0;          // yarn: those that turn less often are slowed by `factor`
  bool truncate = true;            // yarn: the pairs where the two begin are whole numbers
  double attention_factor = 1.0;   // yarn: Q and K are multiplied by it as they are rotated
};

struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM"
  std::string model_type;    // "llama"
  DType dtype = DType::f16;  // of the weights: f32, f16 or bf16
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
  bool qkv_bias = false;
  bool qk_norm = false;  // every head of Q and K is normalised before it is rotated
  bool o_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  int64_t window = 0;               // sliding window; 0 is none
  std::vector<bool> window_layers;  // empty: the window holds in every layer
  std::vector<int32_t> eos_ids;
  int32_t bos_id = -1;  // -1: none given

  int64_t layer_window(int64_t layer) const {
    if (window_layers.empty()) return window;
    return window_layers[static_cast<size_t>(layer)] ? window : 0;
  }
};

}  // namespace fp8kv
