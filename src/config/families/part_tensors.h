// The tensors of parts that only some layers have, by role: experts, a state, latent attention.
// Internal to config; all others are in tensor_table.
#pragma once

#include "core/config.h"
#include "core/tensor.h"

namespace fp8kv {

// What a role's tensor is by itself.
struct RoleTensor {
  Shape shape;
  bool exists = true;
  bool has_bias = false;
};

// Of a layer with experts; nothing of them is in others.
RoleTensor tensor_of_experts(TensorRole role, const ModelConfig& config, bool has_experts);

// Of a layer that keeps a state; nothing of them is in others.
RoleTensor tensor_of_state(TensorRole role, const ModelConfig& config, bool has_state);

// Of latent attention; nothing of it is in others. Only what is made of the layer's input may have
// a bias.
RoleTensor tensor_of_latent(TensorRole role, const ModelConfig& config);

}  // namespace fp8kv
