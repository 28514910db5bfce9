// The requested cache, layer by layer: --kv-cache-dtype, and the layers that
// --kv-cache-dtype-skip-layers leaves in the model's dtype, like in vLLM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cache/cache_type.h"
#include "core/model/model_description.h"

namespace fp8kv {

// The layers that `names` means, in rising order. A name is a layer number, or "sliding_window" for
// every layer with a window.
// Throws a usage Error for any other name, for a layer that does not exist or has no cache, and for
// "sliding_window" if no layer has a window.
std::vector<int64_t> skipped_layers(const std::vector<std::string>& names,
                                    const ModelDescription& model);

// The layer numbers recorded in a scale file, as names.
std::vector<std::string> layer_names(const std::vector<int64_t>& layers);

// A cache of `type`, with the `skipped` layers in `own`. Throws the usage Errors of skipped_layers,
// and one if another layer cannot have `type`.
ModelCache model_cache(const CacheType& type, const CacheType& own,
                       const std::vector<std::string>& skipped, const ModelDescription& model);

}  // namespace fp8kv
