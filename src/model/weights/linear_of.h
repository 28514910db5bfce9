// Which product of a layer a tensor's role is.
#pragma once

#include "core/tensor_row.h"
#include "model/weights/layer_weights.h"

namespace fp8kv {

// Null where the layer has none of this role, and for roles that no Linear is: norms, matrices of
// single experts, and those that latent attention has for each head.
const Linear* linear_of(const LayerWeights& layer, TensorRole role);

}  // namespace fp8kv
