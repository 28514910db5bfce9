// Sparse attention (DSA) as config.json tells of it: an indexer chooses the tokens that each token
// sees, index_topk of them, by keys that it caches beside the latents. Internal to config.
#pragma once

#include "core/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Whether layers of this config have such an indexer. Throws for one in a family of which it is not
// known.
bool has_indexer(const Json& text);

// Sets what the indexers of the layers cache. REQUIRES has_indexer.
void describe_indexer(const Json& text, ModelDescription& out);

}  // namespace fp8kv
