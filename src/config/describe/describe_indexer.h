// Sparse attention in config.json. In each layer an indexer picks the index_topk tokens that
// a token attends to, by keys cached beside the latents. Internal to config.
#pragma once

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Whether the layers of this config have an indexer. Throws if the config has one in a family that
// is not known for it.
bool has_indexer(const Json& text);

// Sets the size of each layer's indexer keys. REQUIRES has_indexer.
void describe_indexer(const Json& text, ModelDescription& out);

}  // namespace fp8kv
