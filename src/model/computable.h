// Checks the assumptions of the forward pass.
#pragma once

#include "core/config.h"

namespace fp8kv {

// Throws unless Forward computes what the config says. Layers may differ only in their windows,
// share one RoPE table, and follow BlockConfig's rules. check_rows checks the tensors.
void check_computable(const ModelConfig& config);

}  // namespace fp8kv
