// Inkling's config.json in the keys that other families have.
#pragma once

#include "json/json.h"

namespace fp8kv {

// Returns `text` with the keys of published and of saved Inkling replaced: layer_types and
// mlp_layer_types in place of lists of numbers, a sliding_window, and heads of layers with a window
// in per_layer_config. Throws, naming the key, where runtimes differ in what keys mean. Other
// models come back unchanged. `config` is the whole config.json, which `text` may be a part of.
Json with_inkling_terms(const Json& text, const Json& config);

}  // namespace fp8kv
