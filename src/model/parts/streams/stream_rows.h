// Rows of several residual streams as mix_streams takes them.
#pragma once

#include <cstdint>

#include "core/numbers/tensor.h"

namespace fp8kv {

// Rows x [n, streams * dim] with their streams as a dimension: [n, streams, dim].
template <typename View>
View apart(const View& x, int64_t dim) {
  return {x.data, x.dtype, Shape{x.shape[0], x.shape.elements() / x.shape[0] / dim, dim}};
}

}  // namespace fp8kv
