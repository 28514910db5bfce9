// Biases of attention's scores for the distance between two tokens: see DistanceConfig.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class DistanceForward {
 public:
  // For positions below `max_positions`. REQUIRES config.distances; `config` outlives this.
  DistanceForward(ForwardMemory& memory, const ModelConfig& config, int64_t max_positions);

  // The biases of rows x [n, dim], which are normalised already, in layer `index`. They are
  // scratch, valid until the next call.
  DistanceBias run(int64_t index, const DistanceWeights& weights, const ConstTensorView& x);

 private:
  Backend& backend_;
  const ModelConfig& config_;
  Tensor states_;                              // [max_rows, the most n_heads * dim of a layer]
  std::vector<std::optional<Tensor>> growth_;  // by rotation: [max_positions] f32, if Q grows
};

}  // namespace fp8kv
