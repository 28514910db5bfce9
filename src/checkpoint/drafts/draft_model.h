// A draft layer that can be computed up to the K and V that it caches: its config, and the tensors
// that make its input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/drafts/draft_layers.h"
#include "config/families/tensor_table.h"
#include "core/model/config.h"

namespace fp8kv {

struct DraftModel {
  DraftLayer layer;
  // The model's config with other layers. The draft layer is layer `index`, and is like the model's
  // last layer with full attention.
  ModelConfig config;
  int64_t index = 0;
  ModelTensor embedding_norm;  // [dim]
  ModelTensor hidden_norm;     // [dim]
  ModelTensor product;         // [dim, 2 * dim]
};

// Throws if this kind of layer is not supported. Throws if the layer's tensors before attention
// differ from those of the model's last layer. `config` is the model's.
DraftModel read_draft_model(const Checkpoint& checkpoint, const ModelConfig& config,
                            const DraftLayer& layer);

// The draft layers that can be measured, and for each other draft layer the reason why not.
struct DraftModels {
  std::vector<DraftModel> measured;
  std::vector<std::string> left_out;  // "draft layer mtp.layers.1: ..."
};

// Only the first of several draft layers can be computed: the others read tokens that drafts chose.
DraftModels read_draft_models(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
