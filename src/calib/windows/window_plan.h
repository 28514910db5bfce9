// Divides windows of tokens into batches that go through a layer together, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8kv {

// Windows that go through a layer together: one step, in which each window is a sequence.
struct WindowBatch {
  size_t index = 0;  // among the batches
  size_t first = 0;  // index of its first window
  size_t count = 0;
  int64_t first_row = 0;  // among the rows of all windows
  int64_t rows = 0;
};

struct WindowPlan {
  std::vector<WindowBatch> batches;
  int64_t total_rows = 0;
  int64_t longest_window = 0;
  // The maximum over all batches.
  int64_t most_rows = 0;
  int64_t most_windows = 0;
  int64_t most_pages = 0;
  int64_t total_pages = 0;  // summed over all batches
};

// Rows of a batch: enough for matrix products to run at full speed.
inline constexpr int64_t kBatchRows = 2048;

// Makes batches of up to `batch_rows` rows, or of one longer window. A new batch begins at each
// window number in `boundaries`.
WindowPlan plan_windows(const std::vector<std::vector<int32_t>>& windows,
                        const std::vector<size_t>& boundaries = {},
                        int64_t batch_rows = kBatchRows);

}  // namespace fp8kv
