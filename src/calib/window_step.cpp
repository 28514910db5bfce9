#include "calib/window_step.h"

#include "base/error.h"

namespace fp8kv {

WindowStep::WindowStep(Backend& backend, const ModelConfig& config, const WindowPlan& plan,
                       int64_t n_layers)
    : step(backend, plan.most_rows, plan.most_windows, KvCache::pages_for(plan.longest_window)),
      cache(backend, config, {config.dtype, n_layers, plan.most_pages}, nullptr) {}

void WindowStep::begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch) {
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
