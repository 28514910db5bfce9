// Whether a table of tensors has a place for everything that a config computes with.
#pragma once

#include "core/model/config.h"

namespace fp8kv {

// Throws unless config.tensors has exactly one row for every tensor of the config, in layers with
// experts and in others. Rows of layers have "{}" in their names, others do not. The forward pass
// would omit a tensor without a row.
void check_rows(const ModelConfig& config);

}  // namespace fp8kv
