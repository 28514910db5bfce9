// The layers of a checkpoint that draft tokens (MTP). Each has its own KV cache beside those of the
// model's layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/draft_kinds.h"

namespace fp8kv {

struct DraftLayer {
  std::string name;  // "mtp.layers.0", "model.layers.46"
  const DraftKind* kind = nullptr;
  int64_t number = 0;  // the number in the name
};

// Finds the draft layers with K projections, ordered by kind and number. Layers behind the model's
// last count only up to the number that config.json gives.
std::vector<DraftLayer> find_draft_layers(const TensorMap& tensors, const Json& config);

// The part of a tensor's name below the layer: "self_attn.k_scale". "" if the tensor belongs to
// another layer.
std::string_view rest_in(const DraftLayer& layer, std::string_view tensor);

// The index in `layers` of the layer with this tensor; layers.size() if there is none.
size_t draft_of(const std::vector<DraftLayer>& layers, std::string_view tensor);

// The name in the checkpoint for a name of DraftEntry, without ".weight".
std::string entry_name(const DraftLayer& layer, std::string_view name);

// "1 draft layer (mtp.layers.0)", "3 draft layers (a, b and c)".
std::string draft_list(const std::vector<DraftLayer>& layers);

}  // namespace fp8kv
