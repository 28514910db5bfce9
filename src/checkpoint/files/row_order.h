// The order of a tensor's rows in its file, if it is not the order that models compute with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fp8kv {

// Rotated pairs. Mistral's own files have the two rows of a pair beside each other. transformers
// has the first rows of all pairs of a head, then the second ones.
struct RowOrder {
  int64_t head_rows = 0;   // rows of a head, an even number; 0: the file has the order of models
  uint64_t row_bytes = 0;  // REQUIRED if head_rows > 0

  bool is_other() const { return head_rows > 0; }
  // The number in the file of a model's row, and the reverse.
  int64_t in_file(int64_t row) const;
  int64_t in_model(int64_t row) const;
};

// Copies all rows of `from`, a file's tensor of `bytes`, to `to` in the order of models.
void copy_in_order(const RowOrder& order, const std::byte* from, uint64_t bytes, std::byte* to);

}  // namespace fp8kv
