// params.json, the config of Mistral's own format, in the keys of transformers.
#pragma once

#include <string>

#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kParamsFile = "params.json";

// Returns the config.json that transformers would have for the model of `params`. It gives dense
// models, Mixtral, and latent attention with experts (Mistral Large 3); images stay outside. Keys
// that are unknown here are copied, so they are reported like those of a config.json. Throws,
// naming the key, for a missing key, and for a value that means another computation. `dtype` is the
// name of the weights' dtype, which most files leave out; "" if it is unknown.
Json config_of_mistral(const Json& params, const std::string& dtype);

}  // namespace fp8kv
