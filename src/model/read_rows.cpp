#include "model/read_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace fp8kv {

void read_rows(std::span<const int64_t> ids, size_t row_bytes, std::byte* out,
               const std::function<void(int64_t id, std::span<std::byte> to)>& read) {
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ids[a] < ids[b]; });
  const std::byte* last = nullptr;
  for (size_t i = 0; i < order.size(); ++i) {
    std::byte* to = out + order[i] * row_bytes;
    if (i > 0 && ids[order[i]] == ids[order[i - 1]]) {
      std::memcpy(to, last, row_bytes);
    } else {
      read(ids[order[i]], {to, row_bytes});
    }
    last = to;
  }
}

}  // namespace fp8kv
