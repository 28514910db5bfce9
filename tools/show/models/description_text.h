// A model's description in inspect and plan: its layers, and the bytes of a cache for them.
#pragma once

#include <string>

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// "2 KV heads of 64"; "8 KV heads of 256 and 2 of 512" where layers differ.
std::string kv_heads_text(const ModelDescription& model);

// Bytes per token for each type of cache; "" for a model without a cache. REQUIRES known layers.
std::string cache_table(const ModelDescription& model);

// The members `cache_layers`, `layers` and `kv_bytes_per_token`, or null if the layers are not
// known.
void layers_json(JsonWriter& json, const ModelDescription& model);

}  // namespace fp8kv
