#include "checkpoint/files/row_order.h"

#include <cstring>

namespace fp8kv {

int64_t RowOrder::in_file(int64_t row) const {
  const int64_t inside = row % head_rows, pairs = head_rows / 2;
  return row - inside + 2 * (inside % pairs) + inside / pairs;
}

int64_t RowOrder::in_model(int64_t row) const {
  const int64_t inside = row % head_rows, pairs = head_rows / 2;
  return row - inside + inside % 2 * pairs + inside / 2;
}

void copy_in_order(const RowOrder& order, const std::byte* from, uint64_t bytes, std::byte* to) {
  const auto rows = static_cast<int64_t>(bytes / order.row_bytes);
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + static_cast<uint64_t>(row) * order.row_bytes,
                from + static_cast<uint64_t>(order.in_file(row)) * order.row_bytes,
                order.row_bytes);
  }
}

}  // namespace fp8kv
