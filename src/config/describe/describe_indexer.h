// Sparse attention in config.json. In each layer an indexer picks the index_topk tokens that
// a token attends to, by keys cached beside the latents. Internal to config.
#pragma once

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Whether the layers of this config have an indexer. Throws if the config has one in a family that
// is not known for it.
bool has_indexer(const Json& text);

bool is_glm5_next(const Json& text);

// A number of MiniMax M3's indexer: under transformers' key, or published in
// sparse_attention_config, or `usual`. Throws if both are there and differ.
int64_t index_number(const Json& text, const char* key, const char* published, int64_t usual);

// Sets the size of each layer's indexer keys, and how many tokens a row sees. REQUIRES has_indexer.
void describe_indexer(const Json& text, ModelDescription& out);

}  // namespace fp8kv
