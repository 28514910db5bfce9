// Muse Glimmer and Muse Spark share these keys of config.json. Internal to the rows of both.
#pragma once

#include <vector>

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Sets what both have: norms of the embeddings, of heads and around blocks, a gate of attention's
// output, and the factor and cap of logits.
//   usual_output: transformers' default of output_multiplier
void parse_muse(const Json& config, double usual_output, ModelConfig& out);

// Whether each layer rotates: all but every fourth, counted from the last, unless the config says
// so. Layers that do not get no rotation.
std::vector<bool> parse_muse_rotations(const Json& config, ModelConfig& out);

}  // namespace fp8kv
