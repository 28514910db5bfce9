// From config.json to a model that can be computed.
#pragma once

#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// Numbers and switches of a config.json, old and new spelling, and the keys that nobody here knows.
// Throws, naming the key, for one that other models compute with and this one does not, for an
// unknown architecture (listing the known ones), an unknown rope scaling or activation, impossible
// dimensions, and layers that the architecture has not. dtype is f32 where the config does not say,
// as in transformers. Whether the weights are quantised is not looked at.
ModelConfig parse_model_config(const Json& config);

}  // namespace fp8kv
