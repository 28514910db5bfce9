// The config of a drafter that has a checkpoint of its own (EAGLE-3): one Llama layer that reads
// hidden states of another model.
#pragma once

#include <string>

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// How a drafter's file names its tensors.
struct DrafterNames {
  std::string prefix;         // before "fc", mostly ""
  bool numbered = true;       // "layers.0.self_attn"; else "midlayer.self_attn"
  bool own_embedding = true;  // it has an embedding; else it takes its target's
};

// Reads the layer's config at the top, or under `transformer_layer_config` as speculators writes
// it. Layer 0 of the result runs up to K and V alone. Throws for several layers, other layers than
// Llama's, and other inputs than those of DrafterConfig.
ModelConfig parse_drafter_config(const Json& config, const DrafterNames& names);

}  // namespace fp8kv
