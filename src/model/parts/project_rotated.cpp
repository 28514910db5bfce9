#include "model/parts/project_rotated.h"

#include "model/parts/rope_tables.h"

namespace fp8kv {

void project_rotated(Backend& backend, const ConstTensorView& x, const AttentionWeights& weights,
                     const RopeAppend& rotated, const RopeAppend& appended) {
  const auto n = x.shape[0];
  const auto rotate_and_norm = [&](const TensorView& heads, const Norm& norm) {
    backend.rope_append(rotate_alone(heads, rotated));
    const TensorView rows = reshaped(heads, {n * heads.shape[1], heads.shape[2]});
    backend.norm(rows, norm, rows);
  };
  backend.linear(x, projections_of(weights, rotated));
  const QkNorms& norms = weights.norms.value();
  rotate_and_norm(rotated.q, norms.q);
  if (rotated.k.shape[1] > 0) rotate_and_norm(rotated.k, norms.k);
  backend.rope_append(appended);
}

}  // namespace fp8kv
