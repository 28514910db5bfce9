// Tensors as they are found, put where the forward pass looks for them. The matrices of experts are
// for place_expert.h.
#pragma once

#include <optional>

#include "core/config.h"
#include "core/tensor_row.h"
#include "model/weights/layer_weights.h"

namespace fp8kv {

struct Placing {
  const ModelConfig& config;
  bool is_bias;
  ConstTensorView view;
  std::optional<QuantisedMatrix> codes = {};

  void into(Linear& linear) const;
  void into(std::optional<Linear>& linear) const;
  void into(Norm& norm) const;
  void into(std::optional<Norm>& norm) const;
};

// REQUIRES a role of a layer that is none of a single expert's, and no number.
void place(TensorRole role, const Placing& tensor, LayerWeights& layer);

}  // namespace fp8kv
