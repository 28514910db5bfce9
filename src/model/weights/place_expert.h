// Puts experts' matrices where the forward pass looks for them. A tensor has the matrix of one
// expert, or those of all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/families/tensor_table.h"
#include "model/weights/layer_weights.h"
#include "model/weights/weight_source.h"

namespace fp8kv {

// The index of the expert's matrix with this role; 3: none.
size_t expert_matrix(TensorRole role);

LayerExperts& experts_of(LayerWeights& layer);  // made if there is none yet

// The rows of a tensor that are matrices of one expert, or of all experts of the layer.
struct ExpertTensorPart {
  const ModelTensor& tensor;
  const TensorPart& part;
  int64_t n_experts;  // of the layer
};

// Places a matrix of one expert, or the matrices of all, one after another.
void place_expert(const ExpertTensorPart& from, const ConstTensorView& view,
                  const WeightSource& source, LayerExperts& out);

// Places matrices that products read as they are stored; `dtype` is the type they decode to.
void place_expert_codes(const ExpertTensorPart& from, DType dtype, const QuantisedMatrix& codes,
                        LayerExperts& out);

// Biases of all experts, [experts, rows].
void place_expert_bias(TensorRole role, const ConstTensorView& view, LayerExperts& out);

}  // namespace fp8kv
