// Projections of attention whose Q and K are normalised after their rotation.
#pragma once

#include "backend/backend.h"

namespace fp8kv {

// Projects like Backend::project_append, but rotates Q and K before their norms.
//   rotated: where the products go, and the rotation; appended: the same without a rotation
void project_rotated(Backend& backend, const ConstTensorView& x, const AttentionWeights& weights,
                     const RopeAppend& rotated, const RopeAppend& appended);

}  // namespace fp8kv
