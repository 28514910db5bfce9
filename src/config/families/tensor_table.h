// The tensors that a model computes with. An architecture gives their names (TensorRow); shapes,
// biases and which of them there are follow from the config. What a checkpoint must hold, what is
// loaded, what is streamed and what a quantiser must leave alone are all read from here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/tensor.h"
#include "core/tensor_row.h"

namespace fp8kv {

// The rows of a tensor that belong to one role.
struct TensorPart {
  TensorRole role;
  int64_t first_row = 0;
  int64_t rows = 0;
};

struct ModelTensor {
  std::string name;  // "model.layers.3.mlp.up_proj.weight"
  Shape shape;
  bool is_bias = false;
  int64_t expert = -1;  // which one's it is; -1: of none, or of all
  int64_t head = -1;    // the same of heads
  int64_t stream = -1;  // the same of streams, but for the first
  // In the order of their rows where the layout is TensorLayout::rows; all rows belong to one. Of a
  // tensor [experts, rows, columns] the rows are those of each expert.
  std::vector<TensorPart> parts;
  TensorLayout layout = TensorLayout::rows;
  int64_t groups = 0;  // of rows, where the layout has each role's by heads
};

// Whether its rows are columns of what files have.
bool is_turned(TensorLayout layout);

// Whether it has the matrices of all experts of a layer, or their biases.
bool is_of_all_experts(const ModelTensor& tensor);

// All of a layer, and all that belong to no layer, in the order of config.tensors. Of models with
// tied embeddings both the embedding and lm_head are listed, though either may be absent.
std::vector<ModelTensor> layer_tensors(const ModelConfig& config, int64_t layer);
std::vector<ModelTensor> outer_tensors(const ModelConfig& config);

// What a tensor is where it was quantised, and is decoded: it has rows, those of one role after
// another, or by KV head where they lie so. Its shape is that of the codes.
ModelTensor as_decoded(const ModelTensor& tensor);

// The name of the weight with this role. `layer` counts where the role is a layer's. REQUIRES a
// role that config.tensors has.
std::string weight_name(const ModelConfig& config, TensorRole role, int64_t layer = 0);

// The modules that multiply by a matrix, without the embedding: "model.layers.0.self_attn.q_proj".
std::vector<std::string> linear_modules(const ModelConfig& config);

}  // namespace fp8kv
