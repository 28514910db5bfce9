// Which tensors of a model are matrices, and which matrices get quantised.
#pragma once

#include "core/model/tensor_row.h"

namespace fp8kv {

enum class MatrixUse {
  none,        // no matrix: a table, or one number for each column
  left_alone,  // a matrix kept as it is, small or sensitive to errors: routers, lm_head
  quantised    // a matrix of attention, of a state or of a feed-forward part
};

MatrixUse matrix_use(TensorRole role);

}  // namespace fp8kv
