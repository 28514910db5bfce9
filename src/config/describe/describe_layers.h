// What mixes the tokens of each layer, and which cache it reads, by config.json.
#pragma once

#include <optional>

#include "core/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Sets what mixes the tokens of each layer, its heads where they differ, and whose cache it reads.
// What decides: hybrid_override_pattern; else layers_block_type, layer_types; else full_attn_idxs,
// full_attention_interval, attn_layer_period, attention_chunk_size with the layers that rotate,
// sliding_window with its pattern or switches; num_kv_shared_layers gives the last layers the
// caches of others. Throws where it cannot be told, having left `out` half done. REQUIRES layers
// with the heads that the config gives for all.
void describe_mixing(const Json& text, ModelDescription& out);

// The member that decides what mixes the tokens of the layers; nullopt where there is none, and all
// have full attention.
std::optional<Json> mixing_member(const Json& text);

}  // namespace fp8kv
