// How windows of tokens are put through a layer: several at a time, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8kv {

// Windows that go through a layer together: one step, in which each window is a sequence.
struct WindowBatch {
  size_t index = 0;  // among the batches
  size_t first = 0;  // window
  size_t count = 0;
  int64_t first_row = 0;  // of the rows of all windows
  int64_t rows = 0;
};

struct WindowPlan {
  std::vector<WindowBatch> batches;
  int64_t total_rows = 0;
  int64_t longest_window = 0;
  // The most of any batch.
  int64_t most_rows = 0;
  int64_t most_windows = 0;
  int64_t most_pages = 0;
  int64_t total_pages = 0;  // of all batches
};

// Enough for matrix products to run at full speed.
inline constexpr int64_t kBatchRows = 2048;

// Batches of up to `batch_rows`, or one longer window. At each of `boundaries`, numbers of windows,
// a batch begins.
WindowPlan plan_windows(const std::vector<std::vector<int32_t>>& windows,
                        const std::vector<size_t>& boundaries = {},
                        int64_t batch_rows = kBatchRows);

}  // namespace fp8kv
