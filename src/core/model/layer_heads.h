// KV heads for models whose layers have different numbers of them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_description.h"

namespace fp8kv {

// The number of KV heads of each layer, 0 for layers without a cache. Empty if every layer with a
// cache has the same number, or if it is unknown which layers have one.
std::vector<int64_t> layer_kv_heads(const ModelDescription& model);

}  // namespace fp8kv
