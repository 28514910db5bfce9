// What a config.json says of a model, whether the model can be computed here or not.
#pragma once

#include "core/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Reads a transformer's config.json, at the language model where it wraps one. Throws, naming the
// key, when the number of layers, of heads or of KV heads, or the size of a head cannot be told or
// is impossible, and for a latent vector instead of K and V. Layers that are told in a way not
// known here are Mixing::unknown, and `unclear` says why; feed-forward parts likewise are
// FeedForward::unknown.
ModelDescription describe_model(const Json& config);

// The same, where the config of its language model is at hand already.
ModelDescription describe_model(const Json& config, const Json& text);

// Gives up what is known of the layers, but for their heads.
void make_unclear(ModelDescription& model, Error why);

}  // namespace fp8kv
