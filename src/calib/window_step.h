// The rows of a batch of windows, as the one step that takes them through a layer: every window is
// a sequence of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "calib/window_plan.h"
#include "core/config.h"
#include "model/kv_cache.h"
#include "model/step.h"

namespace fp8kv {

struct WindowStep {
  // For batches of `plan`. With `n_layers` 0 the cache stores nothing and only says which pages
  // each window has, as eval needs it for the caches of its candidates.
  WindowStep(Backend& backend, const ModelConfig& config, const WindowPlan& plan, int64_t n_layers);

  // Fills `step` with the rows of a batch; pages of the last one are free again.
  void begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch);

  Step step;
  // K and V of one batch, in the model's dtype. Nothing is lost by that: K and V are rounded to it
  // before they are stored.
  KvCache cache;
  std::vector<KvCache::Sequence> sequences;
};

}  // namespace fp8kv
