// Checks the assumptions of the forward pass.
#pragma once

#include "core/model/config.h"

namespace fp8kv {

// Throws unless Forward computes what the config says: each layer's mixing, cache and heads, latent
// attention, rotations, blocks, multipliers, experts and streams. check_rows checks the tensors.
void check_computable(const ModelConfig& config);

}  // namespace fp8kv
