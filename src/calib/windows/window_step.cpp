#include "calib/windows/window_step.h"

#include "base/error.h"

namespace fp8kv {

WindowStep::WindowStep(Backend& backend, const ModelConfig& config, const WindowPlan& plan,
                       CacheMemory memory, bool keep)
    : step(backend, plan.most_rows, plan.most_windows, KvCache::pages_for(plan.longest_window),
           config.block.differential),
      cache(backend, config, {config.dtype, keep ? plan.total_pages : plan.most_pages, 0, memory},
            nullptr),
      keep_(keep) {}

void WindowStep::begin(const std::vector<std::vector<int32_t>>& windows, const WindowBatch& batch) {
  if (!keep_) {
    for (auto& [index, sequences] : sequences_) {
      for (KvCache::Sequence& sequence : sequences) cache.release(sequence);
    }
    sequences_.clear();
  }
  std::vector<KvCache::Sequence>& sequences = sequences_[batch.index];
  const bool known = !sequences.empty();
  sequences.resize(batch.count);
  step.clear(kPromptStep);
  for (size_t i = 0; i < batch.count; ++i) {
    const std::vector<int32_t>& window = windows[batch.first + i];
    if (!known) {
      const bool extended = cache.extend(sequences[i], static_cast<int64_t>(window.size()));
      FP8KV_ASSERT(extended);
    }
    step.add(window, sequences[i]);
  }
  step.upload();
}

}  // namespace fp8kv
