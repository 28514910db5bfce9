// Layers that draft tokens (MTP): how checkpoints store them, and how their input is made. A table
// with a row for each kind. checkpoint/drafts/draft_layers.h decides which kind a checkpoint has.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "json/json.h"

namespace fp8kv {

// The tensors that make the input of a draft layer: product([norm(embedding of the next token),
// norm(the model's last hidden state)]). The names are those in the checkpoint, with "{}" for the
// name of the layer.
struct DraftEntry {
  std::string_view embedding_norm;
  std::string_view hidden_norm;
  std::string_view product;
  bool hidden_first = false;  // the product takes the hidden state first, then the embedding
  bool first_masked = false;  // the embedding at position 0 counts as 0, before its norm
};

struct DraftKind {
  std::string_view name;    // for messages and JSON
  std::string_view layers;  // the prefix of a layer's number; "" for layers behind the model's last
  std::span<const std::string_view> counts;  // keys of config.json for their number
  DraftEntry entry;
  // Supported architectures whose draft layer is like the model's last layer with attention.
  std::span<const std::string_view> computed;
};

// All kinds, in the order of trying: the first one whose tensors exist is the layer's kind.
std::span<const DraftKind> draft_kinds();

// The number of draft layers of this kind by config.json; 0 if it gives none.
int64_t draft_count(const DraftKind& kind, const Json& config);

}  // namespace fp8kv
