// What every batch of a calibration is computed with: scratch of the forward pass, the rows of a
// step, one layer's cache, and the counters of one layer.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "calib/window_plan.h"
#include "calib/window_step.h"
#include "core/config.h"
#include "model/model.h"

namespace fp8kv {

struct Workspace {
  // For batches of `plan` through the first `n_layers`.
  Workspace(Backend& backend, const ModelConfig& config, const WindowPlan& plan, int64_t n_layers);

  // What is counted in layer `index`.   [3, n_kv_heads, kMagnitudeWords] u64; nothing where the
  // layer writes no cache
  std::optional<TensorView> magnitudes_of(const ModelConfig& config, int64_t index) const;

  Forward forward;
  WindowStep rows;    // with memory that the layers use in turn
  Tensor magnitudes;  // for the layer with most heads
  Tensor reached;     // [experts] u64: tokens of each; of models with experts
};

}  // namespace fp8kv
