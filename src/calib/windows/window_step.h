// The rows of a batch of windows, as one step through a layer. Every window is a sequence of its
// own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "backend/backend.h"
#include "calib/windows/window_plan.h"
#include "core/model/config.h"
#include "model/cache/kv_cache.h"
#include "model/step.h"

namespace fp8kv {

struct WindowStep {
  // Made for the batches of `plan`. Without memory, the cache only assigns pages to windows, which
  // is all that eval needs for its candidates' caches. With `keep`, each window keeps its own pages
  // in every layer, so that later layers can read them.
  WindowStep(Backend& backend, const ModelConfig& config, const WindowPlan& plan,
             CacheMemory memory, bool keep);

  // Fills `step` with the rows of a batch. Without `keep`, frees the pages of the previous batch.
  void begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch);

  Step step;
  // K and V of one batch, in the model's dtype. This loses nothing, since K and V are rounded to
  // that dtype before they are stored.
  KvCache cache;

 private:
  bool keep_;
  // The sequences of the last batch, or with `keep` of every batch so far, by batch index.
  std::map<size_t, std::vector<KvCache::Sequence>> sequences_;
};

}  // namespace fp8kv
