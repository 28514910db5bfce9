#include "calib/workspace.h"

#include "base/error.h"
#include "core/histogram.h"

namespace fp8kv {

Workspace::Workspace(Backend& backend, const ModelConfig& config, const WindowPlan& plan)
    : forward(backend, config, plan.most_rows, plan.longest_window),
      step(backend, plan.most_rows, plan.most_windows, KvCache::pages_for(plan.longest_window)),
      cache(backend, config, {config.dtype, 1, plan.most_pages}, nullptr),
      magnitudes(backend.allocate(DType::u64, Shape{3, config.n_kv_heads, kMagnitudeWords})) {}

void Workspace::begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch) {
  for (KvCache::Sequence& sequence : sequences) cache.release(sequence);
  sequences.assign(batch.count, {});
  step.clear(kPromptStep);
  for (size_t i = 0; i < batch.count; ++i) {
    const std::vector<int32_t>& window = windows[batch.first + i];
    const bool extended = cache.extend(sequences[i], static_cast<int64_t>(window.size()));
    FP8KV_ASSERT(extended);
    step.add(window, sequences[i]);
  }
  step.upload();
}

}  // namespace fp8kv
