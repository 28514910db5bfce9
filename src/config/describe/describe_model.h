// Describes a model from its config.json, even if its forward pass is not supported.
#pragma once

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Reads a transformer's config.json, or the config of the language model that it wraps. Throws,
// naming the key, if the number of layers, heads or KV heads, or the size of a head, is unknown or
// impossible. Throws for unsupported forms of latent attention. Layers described in an unknown way
// become Mixing::unknown, and `unclear` says why. Unknown feed-forward parts become
// FeedForward::unknown.
ModelDescription describe_model(const Json& config);

// Like the above, if the config of the language model is already at hand.
ModelDescription describe_model(const Json& config, const Json& text);

// Resets everything known about the layers except their heads.
void make_unclear(ModelDescription& model, Error why);

}  // namespace fp8kv
