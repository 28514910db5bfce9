// The cache that is asked for, layer by layer: --kv-cache-dtype, and the layers that
// --kv-cache-dtype-skip-layers leaves in the model's own dtype, as in vLLM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cache_type.h"
#include "core/model_description.h"

namespace fp8kv {

// `names`: numbers of layers, and "sliding_window" for every layer with a window. In rising order.
// Throws a usage Error for a name that is neither, a layer that the model lacks or that has no
// cache, and for "sliding_window" where no layer has a window.
std::vector<int64_t> skipped_layers(const std::vector<std::string>& names,
                                    const ModelDescription& model);

// The numbers as names: what a scale file recorded.
std::vector<std::string> layer_names(const std::vector<int64_t>& layers);

// The cache of a model where these layers are left in `own`. Throws a usage Error as skipped_layers
// does, and where another layer cannot be of `type`.
ModelCache model_cache(const CacheType& type, const CacheType& own,
                       const std::vector<std::string>& skipped, const ModelDescription& model);

}  // namespace fp8kv
