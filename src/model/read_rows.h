// Reads rows of a table from its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace fp8kv {

// out[i] = row ids[i]. Calls `read` once for each row, in the order of their ids.
//   out: ids.size() rows of `row_bytes`
void read_rows(std::span<const int64_t> ids, size_t row_bytes, std::byte* out,
               const std::function<void(int64_t id, std::span<std::byte> to)>& read);

}  // namespace fp8kv
