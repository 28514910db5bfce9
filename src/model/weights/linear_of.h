// Finds a layer's product by the role of its tensor.
#pragma once

#include "core/model/tensor_row.h"
#include "model/weights/layer_weights.h"

namespace fp8kv {

// Null if the layer has no such product, and for roles without a Linear: norms, matrices of single
// experts, and latent attention's matrices per head.
const Linear* linear_of(const LayerWeights& layer, TensorRole role);

}  // namespace fp8kv
