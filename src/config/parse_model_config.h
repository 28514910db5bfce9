// Turns a config.json into a model that can be computed.
#pragma once

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Reads the numbers and switches of a config.json in old and new spellings, and lists its unknown
// keys. Throws, naming the key, for:
//   a key that other models compute with and this one does not
//   an unknown architecture (listing the known ones), rope scaling or activation
//   impossible dimensions, or layers that the architecture does not have
// dtype is f32 by default, like in transformers. Does not check whether the weights are quantised.
ModelConfig parse_model_config(const Json& config);

}  // namespace fp8kv
