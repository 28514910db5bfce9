// The memory that every batch of a calibration shares: scratch of the forward pass, the rows of a
// step, one layer's cache, and one layer's counters.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "calib/windows/window_plan.h"
#include "calib/windows/window_step.h"
#include "core/model/config.h"
#include "model/model.h"
#include "model/parts/sparse/chosen_tokens.h"

namespace fp8kv {

struct Workspace {
  // Made for batches of `plan` through the first `n_layers`.
  Workspace(Backend& backend, const ModelConfig& config, const WindowPlan& plan, int64_t n_layers);

  // The counters of layer `index`; nothing if the layer writes no cache.   [3, n_kv_heads,
  // kMagnitudeWords] u64
  std::optional<TensorView> magnitudes_of(const ModelConfig& config, int64_t index) const;

  Forward forward;
  WindowStep rows;  // its memory serves one layer after another
  ChosenTokens chosen;
  Tensor magnitudes;  // sized for the layer with most heads
  Tensor reached;     // [choices] u64: tokens of each, for models with experts
};

}  // namespace fp8kv
