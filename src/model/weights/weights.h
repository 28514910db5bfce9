// Tensors of a checkpoint as the forward pass wants them.
#pragma once

#include <cstdint>
#include <vector>

#include "config/families/tensor_table.h"
#include "core/model/config.h"
#include "model/weights/layer_weights.h"
#include "model/weights/weight_source.h"

namespace fp8kv {

enum class LayerPart {
  whole,
  up_to_kv  // stops once K and V are observed and stored: all that calibration needs of the last
};

// The tensors that the part of a layer computes with on the backend.
std::vector<ModelTensor> needed_tensors(const ModelConfig& config, int64_t index, LayerPart part);

// A norm without weights of its own: they are all 1.
Norm plain_norm(const ModelConfig& config, int64_t size, const WeightSource& source);

// Makes a layer's weights. Calls `find` once for each tensor. Roles of one tensor are views of it
// if their rows are adjacent there.
LayerWeights make_layer_weights(const ModelConfig& config, int64_t index, LayerPart part,
                                const WeightSource& source);

}  // namespace fp8kv
