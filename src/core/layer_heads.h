// KV heads of models whose layers differ in their number.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model_description.h"

namespace fp8kv {

// Of each layer, 0 of those without a cache; empty where all layers with one have as many, or where
// it is not known which have.
std::vector<int64_t> layer_kv_heads(const ModelDescription& model);

}  // namespace fp8kv
