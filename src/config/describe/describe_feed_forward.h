// Finds the feed-forward part of each layer in config.json. Internal to config.
#pragma once

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Sets the feed-forward part of each layer. These keys decide which layers have experts:
// hybrid_override_pattern and layers_block_type, else mlp_layer_types, else mlp_only_layers with
// decoder_sparse_step, first_k_dense_replace, interleave_moe_layer_step and expert_layer_period.
// The model type and the activation decide whether the other layers are gated. Throws for a member
// of a wrong type, and then leaves `out` half done.
void describe_feed_forward(const Json& text, ModelDescription& out);

}  // namespace fp8kv
