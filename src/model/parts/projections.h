// Products with a layer's matrices.
#pragma once

#include "backend/op_arguments.h"

namespace fp8kv {

inline Projection project_to(const Linear& linear, const TensorView& out) {
  return {linear.weight, linear.bias, out, false, linear.codes};
}

// Adds the product to `out`.
inline Projection project_onto(const Linear& linear, const TensorView& out) {
  return {linear.weight, linear.bias, out, true, linear.codes};
}

}  // namespace fp8kv
