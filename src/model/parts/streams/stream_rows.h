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

// A row with all its streams as one head, for copy_columns.
template <typename View>
View as_one_head(const View& x) {
  return {x.data, x.dtype, Shape{x.shape[0], 1, x.shape.elements() / x.shape[0]}};
}

// Copies one stream of rows x [n, streams * dim].   out [n, dim]
inline void copy_stream(Backend& backend, const ConstTensorView& x, int64_t stream,
                        const TensorView& out) {
  const int64_t dim = out.shape[1];
  backend.copy_columns({as_one_head(x), stream * dim}, {as_one_head(out), 0}, dim);
}

// Copies `from` [n, dim] into one stream of rows x.
inline void put_stream(Backend& backend, const ConstTensorView& from, int64_t stream,
                       const TensorView& x) {
  const int64_t dim = from.shape[1];
  backend.copy_columns({as_one_head(from), 0}, {as_one_head(x), stream * dim}, dim);
}

}  // namespace fp8kv
