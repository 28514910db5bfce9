// Puts the tensors of attention with one row where the forward pass looks for them: see
// SharedRowConfig.
#pragma once

#include "core/model/tensor_row.h"
#include "model/weights/placing.h"

namespace fp8kv {

// Places a tensor of such attention, and returns whether it is one. Roles that other attention has
// too are left to place().
bool place_shared_row(TensorRole role, const Placing& tensor, LayerWeights& layer);

}  // namespace fp8kv
