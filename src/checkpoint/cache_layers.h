// Which layers of a model hold a KV cache, and how much of the past: read from config.json alone,
// for models that cannot be run here too.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "json/json.h"

namespace fp8kv {

struct CacheLayer {
  int64_t k_elements = 0;  // of one token and one KV head; 0: the layer holds no cache
  int64_t v_elements = 0;
  int64_t window = 0;  // tokens that are kept; 0: all
  bool operator==(const CacheLayer&) const = default;
};

// One for every layer. What decides: hybrid_override_pattern; else layer_types; else
// full_attention_interval, attn_layer_period, sliding_window with its pattern or switches;
// num_kv_shared_layers takes the last layers out. Throws where parse_model_shape does (a latent
// vector instead of K and V among others), and for layer types and keys that say so in ways not
// known here, rather than count them wrong.
std::vector<CacheLayer> parse_cache_layers(const Json& config);

// Throws, naming the tensor, when a K projection of the language model is stored in a shape that
// contradicts `layers`: some configs leave out that layers differ.
void check_cache_layers(const Checkpoint& checkpoint, const std::vector<CacheLayer>& layers,
                        int64_t n_kv_heads);

}  // namespace fp8kv
