#include "backend/cpu/memory/cpu_arrange.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

// Works in squares of this many rows and columns: the cache keeps what is read of a column until
// its neighbours are wanted.
constexpr int64_t kTile = 64;

template <typename T>
void arrange_rows(const T* from, Steps steps, T* to, int64_t rows, int64_t columns) {
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t end = std::min(first + kTile, columns);
    for (int64_t i = 0; i < rows; ++i) {
      const T* row = from + i * steps.row;
      for (int64_t j = first; j < end; ++j) to[i * columns + j] = row[j * steps.column];
    }
  }
}

template <typename T>
void arrange_as(ThreadPool& pool, const ConstTensorView& from, Steps steps, const TensorView& to) {
  const int64_t rows = to.shape[0], columns = to.shape[1];
  pool.run((rows + kTile - 1) / kTile, [&](int64_t job, int /*thread*/) {
    const int64_t first = job * kTile;
    arrange_rows(from.as<T>() + first * steps.row, steps, to.as<T>() + first * columns,
                 std::min(kTile, rows - first), columns);
  });
}

}  // namespace

void cpu_arrange(ThreadPool& pool, const ConstTensorView& from, Steps steps, const TensorView& to) {
  FP8KV_ASSERT(from.dtype == to.dtype && is_compute_dtype(to.dtype));
  if (to.dtype == DType::f32) {
    arrange_as<uint32_t>(pool, from, steps, to);
  } else {
    arrange_as<uint16_t>(pool, from, steps, to);
  }
}

}  // namespace fp8kv
