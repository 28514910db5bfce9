// The forward pass's requirements of attention whose one row is K and V. Internal to model.
#pragma once

#include "core/model/config.h"

namespace fp8kv {

// Throws like check_computable. Checks the indexer of such attention too.
void check_shared_row(const ModelConfig& config);

}  // namespace fp8kv
