#include "model/parts/wide_rows.h"

#include <numeric>
#include <vector>

#include "core/numbers/host_view.h"

namespace fp8kv {

WideRows::WideRows(ForwardMemory& memory, int64_t width) : backend_(memory.backend()) {
  if (memory.activation() == DType::f32) return;
  wide_ = memory.rows(DType::f32, width);
  std::vector<int32_t> rows(static_cast<size_t>(memory.max_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  rows_ = memory.make(host_view(rows));
}

ConstTensorView WideRows::widened(const ConstTensorView& x) {
  if (wide_.empty()) return x;
  // Looking up row i for row i gives the same numbers in F32.
  const TensorView wide = wide_.first(x.shape[0]);
  backend_.embed(x, rows_.first(x.shape[0]), wide);
  return wide;
}

}  // namespace fp8kv
