// Where the language model is in a config.json.
#pragma once

#include <optional>

#include "json/json.h"

namespace fp8kv {

// The object that wraps a language model's own config, as `text_config` does; nullopt where there
// is none. A config may have one and yet give its number of layers itself.
std::optional<Json> wrapped_config(const Json& config);

// The object that describes the language model: the config itself, or the `text_config` and the
// like of a model that sees and hears too. A config that gives a number of layers wraps none.
Json language_config(const Json& config);

// The value that names the dtype of the weights, of the config or of the language model in it.
std::optional<Json> find_dtype(const Json& config);

}  // namespace fp8kv
