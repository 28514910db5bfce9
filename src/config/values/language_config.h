// Finds the language model in a config.json.
#pragma once

#include <optional>
#include <string>

#include "json/json.h"

namespace fp8kv {

// The config of the language model inside a larger model: `text_config` and similar keys. nullopt
// if there is none. Some configs have one and also give the number of layers at the top.
std::optional<Json> wrapped_config(const Json& config);

// The object that describes the language model: the config itself if it gives a number of layers,
// else the config that it wraps. Missing keys get the defaults of the family.
Json language_config(const Json& config);

// The config's model_type, or "". Published configs of LongCat Flash have none, and get theirs by
// the architecture.
std::string model_type_of(const Json& config);

// The member that names the dtype of the weights, in the config or else in its language model.
std::optional<Json> find_dtype(const Json& config);

}  // namespace fp8kv
