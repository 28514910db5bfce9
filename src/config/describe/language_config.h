// Where the language model is in a config.json.
#pragma once

#include <optional>

#include "json/json.h"

namespace fp8kv {

// The config of a language model inside that of a model with more parts: `text_config` and the
// like. nullopt where there is none. Some configs have one and give the number of layers
// themselves.
std::optional<Json> wrapped_config(const Json& config);

// The object that describes the language model: the config itself where it gives a number of
// layers, else the one that it wraps, with what its family has for what it leaves out.
Json language_config(const Json& config);

// The member that names the dtype of the weights: of the config, or else of its language model.
std::optional<Json> find_dtype(const Json& config);

}  // namespace fp8kv
