// The tensors that a model computes with. The architecture gives their names (TensorRow), and the
// config decides which exist, their shapes and their biases. This table tells what a checkpoint
// must hold, what is loaded and streamed, and what a quantiser must leave alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/tensor_row.h"
#include "core/numbers/tensor.h"

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
  int64_t expert = -1;  // the expert that it belongs to; -1: to none, or to all
  int64_t head = -1;    // the same for heads
  int64_t stream = -1;  // the same for streams beside the first
  int64_t file = -1;    // the same for NgramConfig::files
  // The roles that share this tensor; every row belongs to one. With TensorLayout::rows they are in
  // the order of their rows. In a tensor [experts, rows, columns] the rows are those of each
  // expert.
  std::vector<TensorPart> parts;
  TensorLayout layout = TensorLayout::rows;
  int64_t groups = 0;       // heads by which the layout alternates, if it does
  bool own_blocks = false;  // see TensorRow
};

// Whether the layout stores a matrix's rows as columns.
bool is_turned(TensorLayout layout);

// Whether the tensor holds the matrices, or biases, of all experts of a layer.
bool is_of_all_experts(const ModelTensor& tensor);

// The tensors of a layer, and the tensors outside of layers, in the order of config.tensors. With
// tied embeddings both the embedding and lm_head are listed, though either may be absent.
std::vector<ModelTensor> layer_tensors(const ModelConfig& config, int64_t layer);
std::vector<ModelTensor> outer_tensors(const ModelConfig& config);

// How a quantised tensor looks after decoding: by rows, one role after another, or by KV head if
// its layout is that. The shape is that of the codes.
ModelTensor as_decoded(const ModelTensor& tensor);

// The name of the weight with this role. `layer` matters only if the role belongs to a layer.
// REQUIRES a role that config.tensors has.
std::string weight_name(const ModelConfig& config, TensorRole role, int64_t layer = 0);

// All modules that multiply by a matrix, except the embedding: "model.layers.0.self_attn.q_proj".
std::vector<std::string> linear_modules(const ModelConfig& config);

}  // namespace fp8kv
