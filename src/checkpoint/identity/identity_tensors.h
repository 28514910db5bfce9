// Picks the tensors that an identity samples: which of a layer's tensors make its K and V, and
// where the matrices of each expert lie. Reads no weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "core/model/config.h"

namespace fp8kv {

// The hexadecimal digits of each digest in an identity.
inline constexpr size_t kDigestDigits = 16;

bool is_of_experts(const ModelTensor& tensor);

// Whether the tensor computes K or V, or an input of K and V within its layer.
bool makes_kv(const ModelTensor& tensor);

// Whether a tensor of layer `index` decides what any layer's cache holds. A model without caches
// counts like one whose first layer has one.
bool decides_caches(const ModelConfig& config, int64_t index, const ModelTensor& tensor);

// One matrix of an expert, as a byte range of a weight.
struct ExpertPart {
  Weight weight;
  uint64_t offset;
  uint64_t bytes;
};

// The experts of a layer of which identities have a piece each. Tensors of fixed ones are read like
// any other matrix.
int64_t sampled_experts_of(const ExpertsConfig& experts);

// The matrices of each expert in a layer, whether experts have separate tensors or share them.
std::vector<std::vector<ExpertPart>> expert_parts(const ModelWeights& weights,
                                                  const std::vector<ModelTensor>& tensors,
                                                  int64_t n_experts);

}  // namespace fp8kv
