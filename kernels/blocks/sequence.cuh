// The sequence of a row of a step, and the part of the cache that the row sees.
#pragma once

#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {

// The sequence whose rows [indptr[s], indptr[s + 1]) hold `row`.
__device__ inline int sequence_of(const Rows& rows, int row) {
  // In decode the row and its sequence mostly have the same number.
  if (row < rows.n_seqs && rows.indptr[row] <= row && row < rows.indptr[row + 1]) return row;
  int low = 0, high = rows.n_seqs;  // indptr[low] <= row < indptr[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (rows.indptr[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Positions [begin, end) that a row at `position` sees.
struct Visible {
  int begin;
  int end;
};

__device__ inline Visible visible_from(int position, int64_t window) {
  const int64_t begin = window > 0 ? position + 1 - window : 0;
  return {begin > 0 ? static_cast<int>(begin) : 0, position + 1};
}

}  // namespace fp8kv::FP8KV_GPU
