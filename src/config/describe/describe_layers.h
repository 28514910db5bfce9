// Finds in config.json how each layer mixes tokens, and which cache it reads.
#pragma once

#include <optional>

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Sets how each layer mixes tokens, its heads if layers differ in them, and the cache that it
// reads. These keys decide: hybrid_override_pattern; else layers_block_type or layer_types; else
// full_attn_idxs, full_attention_interval, attn_layer_period, attention_chunk_size with the
// rotating layers, or sliding_window with its pattern or switches. num_kv_shared_layers lets the
// last layers read other layers' caches. Throws if the mixing cannot be told, and then leaves `out`
// half done. REQUIRES layers with the heads that the config gives for all.
void describe_mixing(const Json& text, ModelDescription& out);

// The member of the config that decides how layers mix tokens; nullopt if there is none, so that
// all have full attention.
std::optional<Json> mixing_member(const Json& text);

}  // namespace fp8kv
