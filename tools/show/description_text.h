// A model's description, as inspect shows it: its layers and what a cache for them takes.
#pragma once

#include <string>

#include "core/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Bytes a token for every type of cache; "" for a model without one. REQUIRES known layers.
std::string cache_table(const ModelDescription& model);

// The members `cache_layers`, `layers` and `kv_bytes_per_token`; null where layers are not known.
void layers_json(JsonWriter& json, const ModelDescription& model);

}  // namespace fp8kv
