// Rows of several residual streams, as ops take them.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// Rows x [n, streams * dim] with their streams as a dimension: [n, streams, dim].
template <typename View>
View by_stream(const View& x, int64_t dim) {
  return {x.data, x.dtype, Shape{x.shape[0], x.shape.elements() / x.shape[0] / dim, dim}};
}

// Norms each stream of rows x [n, streams * dim] by itself, with weights [streams, dim].
inline void norm_streams(Backend& backend, const ConstTensorView& x, const Norm& norm,
                         const TensorView& out) {
  const Shape each{x.shape.elements() / norm.weight.shape[1], norm.weight.shape[1]};
  backend.norm({x.data, x.dtype, each}, norm, {out.data, out.dtype, each});
}

}  // namespace fp8kv
