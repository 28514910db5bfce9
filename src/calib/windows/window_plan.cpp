#include "calib/windows/window_plan.h"

#include <algorithm>

#include "model/cache/kv_cache.h"

namespace fp8kv {

WindowPlan plan_windows(const std::vector<std::vector<int32_t>>& windows,
                        const std::vector<size_t>& boundaries, int64_t batch_rows) {
  WindowPlan plan;
  int64_t pages = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto length = static_cast<int64_t>(windows[i].size());
    const bool begins = std::find(boundaries.begin(), boundaries.end(), i) != boundaries.end();
    if (plan.batches.empty() || begins || plan.batches.back().rows + length > batch_rows) {
      plan.batches.push_back({plan.batches.size(), i, 0, plan.total_rows, 0});
      pages = 0;
    }
    WindowBatch& batch = plan.batches.back();
    ++batch.count;
    batch.rows += length;
    pages += KvCache::pages_for(length);
    plan.total_rows += length;
    plan.longest_window = std::max(plan.longest_window, length);
    plan.most_rows = std::max(plan.most_rows, batch.rows);
    plan.most_windows = std::max(plan.most_windows, static_cast<int64_t>(batch.count));
    plan.most_pages = std::max(plan.most_pages, pages);
    plan.total_pages += KvCache::pages_for(length);
  }
  return plan;
}

}  // namespace fp8kv
