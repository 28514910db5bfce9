// The matrices of experts, put where the forward pass looks for them: each from a tensor of its
// own, or those of all from one.
#pragma once

#include <cstddef>

#include "config/families/tensor_table.h"
#include "core/config.h"
#include "model/weights/layer_weights.h"
#include "model/weights/weight_source.h"

namespace fp8kv {

// Which of an expert's matrices has this role; 3: none.
size_t expert_matrix(TensorRole role);

LayerExperts& experts_of(LayerWeights& layer);  // made if there is none yet

// A matrix of one expert, or of all one after another.
void place_expert(const ModelConfig& config, const ModelTensor& tensor, const TensorPart& part,
                  const ConstTensorView& view, const WeightSource& source, LayerExperts& out);

// The same of one that products read as it is stored; `dtype` is what it is decoded to.
void place_expert_codes(const ModelConfig& config, const ModelTensor& tensor,
                        const TensorPart& part, DType dtype, const QuantisedMatrix& codes,
                        LayerExperts& out);

// Biases of all experts, [experts, rows].
void place_expert_bias(TensorRole role, const ConstTensorView& view, LayerExperts& out);

}  // namespace fp8kv
