// Places the tensors of a layer that uses a shared block.
#pragma once

#include "core/model/tensor_row.h"
#include "model/weights/placing.h"

namespace fp8kv {

// Returns false for a role that is not of shared blocks alone, and then changes nothing.
bool place_block(TensorRole role, const Placing& tensor, LayerWeights& layer);

}  // namespace fp8kv
