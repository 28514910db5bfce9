// The roles of tensors as a table: one row each.
#pragma once

#include "core/model/tensor_row.h"

namespace fp8kv {

enum class MatrixUse {
  none,        // no matrix: a table, or one number for each column
  left_alone,  // a matrix kept as it is, small or sensitive to errors: routers, lm_head
  quantised    // a matrix of attention, of a state or of a feed-forward part
};

// When a model uses a tensor, in this order; `state` is beside or in place of attention.
enum class RolePart {
  embedding,  // before the layers
  cached,     // up to the Q, K and V that attention takes
  attention,
  state,
  rest,    // after attention: feed-forward parts, routers, streams
  expert,  // one of many experts
  head     // after the layers
};

struct RoleRow {
  TensorRole role;
  const char* name;
  RolePart part;
  MatrixUse use;
  bool makes_kv = false;  // K or V of its own layer depend on it
  // Training tools keep it in F32 beside weights in 16 bits. In 16 bits other experts would be
  // chosen, and states would decay at other speeds.
  bool may_be_f32 = false;
};

const RoleRow& role_row(TensorRole role);

}  // namespace fp8kv
