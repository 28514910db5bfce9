// The tensors of a layer as an identity samples them: which of them make its K and V, and where the
// matrices of each expert lie. Reads no weights.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "core/config.h"

namespace fp8kv {

bool is_of_experts(const ModelTensor& tensor);

// K and V, and what they are made from in their own layer.
bool makes_kv(const ModelTensor& tensor);

// The last layer that writes a cache.
int64_t last_cache(const ModelConfig& config);

// One matrix of an expert, in bytes of a weight.
struct ExpertPart {
  Weight weight;
  uint64_t offset;
  uint64_t bytes;
};

// The matrices of each expert of a layer, in tensors of their own or in those of all experts.
std::vector<std::vector<ExpertPart>> expert_parts(const ModelWeights& weights,
                                                  const std::vector<ModelTensor>& tensors,
                                                  int64_t n_experts);

}  // namespace fp8kv
