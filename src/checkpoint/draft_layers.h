// The layers of a checkpoint that draft tokens: each keeps a KV cache of its own beside those of
// the model's layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/describe/draft_kinds.h"

namespace fp8kv {

struct DraftLayer {
  std::string name;  // "mtp.layers.0", "model.layers.46"
  const DraftKind* kind = nullptr;
  int64_t number = 0;  // in the name
};

// Those with K projections, by kind and number. Layers behind the model's last count only as far as
// config.json says that there are such.
std::vector<DraftLayer> find_draft_layers(const TensorMap& tensors, const Json& config);

// The part of the tensor's name below the layer: "self_attn.k_scale". "" for a tensor of another
// layer.
std::string_view rest_in(const DraftLayer& layer, std::string_view tensor);

// The index in `layers` of the layer that has the tensor; layers.size() if none has.
size_t draft_of(const std::vector<DraftLayer>& layers, std::string_view tensor);

// The name of a part of DraftEntry in the checkpoint, without ".weight".
std::string entry_name(const DraftLayer& layer, std::string_view name);

// "1 draft layer (mtp.layers.0)", "3 draft layers (a, b and c)".
std::string draft_list(const std::vector<DraftLayer>& layers);

}  // namespace fp8kv
