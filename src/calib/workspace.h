// What every batch of a calibration is computed with: scratch of the forward pass, the rows of a
// step, one layer's cache, and the counters of one layer.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "calib/window_plan.h"
#include "core/config.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/step.h"

namespace fp8kv {

struct Workspace {
  // For batches of `plan`.
  Workspace(Backend& backend, const ModelConfig& config, const WindowPlan& plan);

  // Fills `step` with the rows of a batch; every window is a sequence of its own.
  void begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch);

  Forward forward;
  Step step;
  // One layer's K and V of one batch, in the model's dtype: exact, since they are rounded to it
  // before they get here.
  KvCache cache;
  std::vector<KvCache::Sequence> sequences;
  Tensor magnitudes;  // [3, n_kv_heads, kMagnitudeWords] u64
};

}  // namespace fp8kv
