// Step 3.5's config.json in the keys of transformers.
#pragma once

#include "json/json.h"

namespace fp8kv {

// Returns `text` with the keys of published Step 3.5 and 3.7 replaced by those that transformers
// 5.24 saves: lists without the entries of draft layers, ropes by type of layer, heads of layers
// with a window in per_layer_config. Throws, naming the key, where runtimes differ in what keys
// mean. Other models come back unchanged.
Json with_step_terms(const Json& text);

}  // namespace fp8kv
