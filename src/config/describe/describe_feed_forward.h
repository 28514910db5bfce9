// The feed-forward part of each layer, by config.json. Internal to config.
#pragma once

#include "core/model_description.h"
#include "json/json.h"

namespace fp8kv {

// What decides where experts are: hybrid_override_pattern, layers_block_type; else mlp_layer_types;
// else mlp_only_layers with decoder_sparse_step, first_k_dense_replace, interleave_moe_layer_step,
// expert_layer_period. Whether the others are gated follows from the model type and the activation.
// Throws for a member of a wrong type, having left `out` half done.
void describe_feed_forward(const Json& text, ModelDescription& out);

}  // namespace fp8kv
