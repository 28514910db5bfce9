#include <vector>

#include <doctest/doctest.h>

#include "calib/windows/window_plan.h"
#include "model/cache/kv_cache.h"

namespace fp8kv {
namespace {

std::vector<std::vector<int32_t>> windows_of(const std::vector<size_t>& lengths) {
  std::vector<std::vector<int32_t>> windows;
  for (const size_t length : lengths) windows.emplace_back(length, 7);
  return windows;
}

// The first window and the number of windows of each batch: {0, 2}, ...
std::vector<std::pair<size_t, size_t>> extents(const WindowPlan& plan) {
  std::vector<std::pair<size_t, size_t>> found;
  for (const WindowBatch& batch : plan.batches) found.emplace_back(batch.first, batch.count);
  return found;
}

using Extents = std::vector<std::pair<size_t, size_t>>;

}  // namespace

TEST_CASE("window_plan: batches are full to the row, and a longer window is one of its own") {
  const WindowPlan plan = plan_windows(windows_of({5, 3, 4, 20, 1}), {}, 8);
  CHECK(extents(plan) == Extents{{0, 2}, {2, 1}, {3, 1}, {4, 1}});
  CHECK(plan.batches[2].index == 2);
  CHECK(plan.batches[2].first_row == 12);
  CHECK(plan.batches[2].rows == 20);
  CHECK(plan.batches[3].first_row == 32);
  CHECK(plan.total_rows == 33);
  CHECK(plan.longest_window == 20);
  CHECK(plan.most_rows == 20);
  CHECK(plan.most_windows == 2);
}

TEST_CASE("window_plan: no batch has windows from both sides of the boundary") {
  CHECK(extents(plan_windows(windows_of({2, 2, 2, 2}), {}, 100)) == Extents{{0, 4}});
  CHECK(extents(plan_windows(windows_of({2, 2, 2, 2}), {3}, 100)) == Extents{{0, 3}, {3, 1}});
  CHECK(extents(plan_windows(windows_of({2, 2, 2, 2}), {3}, 4)) == Extents{{0, 2}, {2, 1}, {3, 1}});
  CHECK(extents(plan_windows(windows_of({2, 2, 2, 2}), {0, 1, 1, 4}, 4)) ==
        Extents{{0, 1}, {1, 2}, {3, 1}});
}

TEST_CASE("window_plan: every window has pages of its own") {
  const size_t page = static_cast<size_t>(kPageSize);
  CHECK(plan_windows(windows_of({1, 1, 1}), {}, 100).most_pages == 3);
  CHECK(plan_windows(windows_of({page, page + 1, 1}), {}, kPageSize).most_pages == 2);
}

}  // namespace fp8kv
