// A draft layer as something to compute, up to what it caches: the config of the layer, and what
// makes its input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/draft_layers.h"
#include "config/families/tensor_table.h"
#include "core/config.h"

namespace fp8kv {

struct DraftModel {
  DraftLayer layer;
  // The model's, but for its layers: the draft layer is number `index`, and like the model's last
  // with attention to all tokens.
  ModelConfig config;
  int64_t index = 0;
  ModelTensor embedding_norm;  // [dim]
  ModelTensor hidden_norm;     // [dim]
  ModelTensor product;         // [dim, 2 * dim]
};

// Throws where the layer is of a kind that is not computed here, or where the checkpoint does not
// have the tensors before its attention as the model's last layer has them. `config` is the
// model's.
DraftModel read_draft_model(const Checkpoint& checkpoint, const ModelConfig& config,
                            const DraftLayer& layer);

// Draft layers that can be measured, and why each of the others cannot.
struct DraftModels {
  std::vector<DraftModel> measured;
  std::vector<std::string> left_out;  // "draft layer mtp.layers.1: ..."
};

// Only the first of several draft layers is computed. The others read tokens that drafts chose.
DraftModels read_draft_models(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
