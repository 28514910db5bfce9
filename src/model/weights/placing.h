// A tensor that is put where the forward pass looks for it.
#pragma once

#include <optional>

#include "core/model/config.h"
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

}  // namespace fp8kv
