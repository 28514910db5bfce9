// How checkpoints hold layers that draft tokens (MTP), and what is in front of such a layer: a
// table, one row for each kind. Which of them a checkpoint has is in checkpoint/draft_layers.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "json/json.h"

namespace fp8kv {

// The tensors that make the input of a draft layer: product([norm(embedding of the next token),
// norm(the model's last hidden state)]). Names are those of the checkpoint; "{}" stands for the
// layer's own name.
struct DraftEntry {
  std::string_view embedding_norm;
  std::string_view hidden_norm;
  std::string_view product;
  bool hidden_first = false;  // the product takes the hidden state before the embedding
  bool first_masked = false;  // at position 0 the embedding is 0, before its norm
};

struct DraftKind {
  std::string_view name;  // for people, and in JSON
  std::string_view
      layers;  // what is before a layer's number; "" for layers behind the model's last
  std::span<const std::string_view> counts;  // keys of config.json that say how many there are
  DraftEntry entry;
  // Architectures that fp8kv computes, and whose draft layer is one like their last with attention.
  std::span<const std::string_view> computed;
};

// In the order in which they are tried: the first whose tensors are there is the layer's.
std::span<const DraftKind> draft_kinds();

// How many layers config.json says that drafts of the kind have; 0 where it says nothing.
int64_t draft_count(const DraftKind& kind, const Json& config);

}  // namespace fp8kv
