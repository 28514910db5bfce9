// A part of check_computable: the indexer of sparse attention. Internal to model.
#pragma once

#include "core/model/config.h"

namespace fp8kv {

// Throws if an indexer is where the forward pass does not compute it.
void check_indexer(const ModelConfig& config);

}  // namespace fp8kv
