// Whether a table of tensors has a place for everything that a config computes with.
#pragma once

#include "core/config.h"

namespace fp8kv {

// Throws unless the rows of config.tensors name every tensor that the config has exactly once,
// in layers with experts and in others, those of layers by rows with "{}" and the others by rows
// without: what no row names would be left out of the forward pass.
void check_rows(const ModelConfig& config);

}  // namespace fp8kv
