// Layers with one row for K and V, and with rows that pool blocks of tokens, in config.json:
// DeepSeek V4. Internal to config.
#pragma once

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

bool has_pools(const Json& text);

// The row that all heads share. Its pools are missing. REQUIRES has_pools.
LayerDescription one_row_layer(const Json& text);

// Sets which layers have pools, and of how many tokens. REQUIRES has_pools, and layers of
// one_row_layer.
void describe_pools(const Json& text, ModelDescription& out);

}  // namespace fp8kv
