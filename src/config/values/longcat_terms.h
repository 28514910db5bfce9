// The config.json of LongCat Flash in the terms of other models.
#pragma once

#include "json/json.h"

namespace fp8kv {

// Returns `text` with num_hidden_layers, the number of layers with a cache, in place of num_layers,
// each of which has two such layers. Adds model_type, which published configs lack. Throws, naming
// the key, where the two counts contradict each other. Other models come back unchanged.
Json with_longcat_terms(const Json& text);

}  // namespace fp8kv
