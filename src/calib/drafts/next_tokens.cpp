#include "calib/drafts/next_tokens.h"

#include <algorithm>

#include "model/cache/kv_cache.h"

namespace fp8kv {

NextTokens::NextTokens(const std::vector<std::vector<int32_t>>& windows,
                       const WindowPlan& of_model) {
  for (const WindowBatch& batch : of_model.batches) {
    WindowBatch next{plan.batches.size(), ids.size(), 0, plan.total_rows, 0};
    int64_t pages = 0;
    for (size_t i = batch.first; i < batch.first + batch.count; ++i) {
      if (windows[i].size() < 2) continue;
      ids.emplace_back(windows[i].begin() + 1, windows[i].end());
      const int64_t rows = std::ssize(ids.back());
      next.count += 1;
      next.rows += rows;
      pages += KvCache::pages_for(rows);
      plan.longest_window = std::max(plan.longest_window, rows);
    }
    plan.total_rows += next.rows;
    plan.total_pages += pages;
    plan.most_rows = std::max(plan.most_rows, next.rows);
    plan.most_windows = std::max(plan.most_windows, static_cast<int64_t>(next.count));
    plan.most_pages = std::max(plan.most_pages, pages);
    plan.batches.push_back(next);
  }
}

std::vector<int32_t> rows_with_next(const std::vector<std::vector<int32_t>>& windows,
                                    const WindowBatch& batch) {
  std::vector<int32_t> rows;
  int32_t first = 0;
  for (size_t i = batch.first; i < batch.first + batch.count; ++i) {
    const auto length = static_cast<int32_t>(windows[i].size());
    for (int32_t at = 0; at + 1 < length; ++at) rows.push_back(first + at);
    first += length;
  }
  return rows;
}

}  // namespace fp8kv
