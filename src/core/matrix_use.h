// Which tensors of a model are matrices of products, and which of these become numbers of fewer
// bits.
#pragma once

#include "core/tensor_row.h"

namespace fp8kv {

enum class MatrixUse {
  none,        // a table, or numbers for each column
  left_alone,  // a small matrix, or one whose errors weigh more: routers, lm_head
  quantised    // attention's, a state's or a feed-forward part's
};

MatrixUse matrix_use(TensorRole role);

}  // namespace fp8kv
