// The rows of a batch of windows, as the one step that takes them through a layer: every window is
// a sequence of its own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "backend/backend.h"
#include "calib/window_plan.h"
#include "core/config.h"
#include "model/kv_cache.h"
#include "model/step.h"

namespace fp8kv {

struct WindowStep {
  // For batches of `plan`. Without memory the cache only says which pages each window has, as eval
  // needs it for the caches of its candidates. With `keep` every window has pages of its own, which
  // it has in every layer: caches that layers read later keep what is in them.
  WindowStep(Backend& backend, const ModelConfig& config, const WindowPlan& plan,
             CacheMemory memory, bool keep);

  // Fills `step` with the rows of a batch. Without `keep` pages of the last one are free again.
  void begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch);

  Step step;
  // K and V of one batch, in the model's dtype. Nothing is lost by that: K and V are rounded to it
  // before they are stored.
  KvCache cache;

 private:
  bool keep_;
  // Of the last batch, or of every batch that there was: by its index.
  std::map<size_t, std::vector<KvCache::Sequence>> sequences_;
};

}  // namespace fp8kv
