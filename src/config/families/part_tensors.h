// Tensors of parts that only some models or layers have: experts, a state, latent attention,
// several streams. tensor_table has all other tensors. Internal to config.
#pragma once

#include "core/model/config.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// The tensor of one role, taken by itself.
struct RoleTensor {
  Shape shape;
  bool exists = true;
  bool has_bias = false;
};

// The tensor of a role of experts. It exists only in layers with experts.
RoleTensor tensor_of_experts(TensorRole role, const ModelConfig& config, bool has_experts);

// The tensor of a role of a state. It exists only in layers that keep a state.
RoleTensor tensor_of_state(TensorRole role, const ModelConfig& config, bool has_state);

// The tensor of a role of latent attention. It exists only in layers with latent attention. Only
// matrices that read the layer's input may have a bias.
RoleTensor tensor_of_latent(TensorRole role, const ModelConfig& config, bool attends);

// The tensor of a role of streams, and of hyper-connections. It exists only in models with these.
RoleTensor tensor_of_streams(TensorRole role, const ModelConfig& config);
RoleTensor tensor_of_hyper(TensorRole role, const ModelConfig& config);

// The tensor of a role of n-grams. It exists only in layers with tables of them.
RoleTensor tensor_of_ngrams(TensorRole role, const ModelConfig& config, int64_t layer);

// The tensor of a role of attention with one row. REQUIRES config.shared_row.
RoleTensor tensor_of_shared_row(TensorRole role, const ModelConfig& config, int64_t layer);

// The tensor of a role of biases of distances, and of short convolutions.
RoleTensor tensor_of_distances(TensorRole role, const ModelConfig& config, int64_t layer);
RoleTensor tensor_of_short_convs(TensorRole role, const ModelConfig& config, int64_t layer);

// The tensor of a role of a shared block, or of the layer that uses it. REQUIRES
// config.shared_block.
RoleTensor tensor_of_block(TensorRole role, const ModelConfig& config, int64_t layer);

RoleTensor tensor_of_drafter(TensorRole role, const ModelConfig& config);

// The tensor of a role of a sparse indexer. It exists only in layers that choose tokens themselves.
RoleTensor tensor_of_indexer(TensorRole role, const ModelConfig& config, bool chooses);

}  // namespace fp8kv
