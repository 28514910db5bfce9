// Puts tensors where the forward pass looks for them. Experts' matrices are in place_expert.h.
#pragma once

#include <optional>

#include "core/model/tensor_row.h"
#include "model/weights/layer_weights.h"
#include "model/weights/placing.h"

namespace fp8kv {

// REQUIRES a role of a hyper-connection, whichever its place.
void place_hyper(TensorRole role, const Placing& tensor, std::optional<HyperWeights>& to);

// REQUIRES a role of a layer. Excludes matrices of single experts, and numbers.
void place(TensorRole role, const Placing& tensor, LayerWeights& layer);

}  // namespace fp8kv
