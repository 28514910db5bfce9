// Layers that an architecture search has left different sizes, or no part of a kind: block_configs
// of Nemotron (DeciLM).
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// The sizes of a layer's parts; 0: it does not have the part.
struct BlockShape {
  int64_t n_kv_heads = 0;
  int64_t hidden_dim = 0;
};

bool has_block_configs(const Json& text);

// Every layer's, from block_configs. Throws, naming the member, for what runtimes do not compute.
// REQUIRES has_block_configs, and out.n_heads, out.dim and the number of layers.
std::vector<BlockShape> block_shapes(const Json& text, const ModelDescription& out);

}  // namespace fp8kv
