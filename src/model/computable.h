// What the forward pass takes for granted of a model, as errors.
#pragma once

#include "core/config.h"

namespace fp8kv {

// Throws unless Forward computes what the config says: what differs between layers is whether they
// have a window, they have one RoPE table between them, and BlockConfig's rules hold. The tensors
// are check_rows' affair.
void check_computable(const ModelConfig& config);

}  // namespace fp8kv
