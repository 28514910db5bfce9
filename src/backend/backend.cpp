#include "backend/backend.h"

#include "base/error.h"

namespace fp8kv {
namespace {

// [n, heads, head_dim] as [n, heads * head_dim].
TensorView flat(const TensorView& view) {
  return reshaped(view, {view.shape[0], view.shape[1] * view.shape[2]});
}

// [n, heads, head_dim] as [n * heads, head_dim].
TensorView by_head(const TensorView& view) {
  return reshaped(view, {view.shape[0] * view.shape[1], view.shape[2]});
}

}  // namespace

std::array<Projection, 3> projections_of(const AttentionWeights& weights, const RopeAppend& args) {
  return {Projection{weights.q.weight, weights.q.bias, flat(args.q)},
          Projection{weights.k.weight, weights.k.bias, flat(args.k)},
          Projection{weights.v.weight, weights.v.bias, flat(args.v)}};
}

void Backend::project_append(const ConstTensorView& x, const Norm& norm,
                             const AttentionWeights& weights, const RopeAppend& args) {
  rmsnorm(x, norm.weight, norm.eps, norm.scratch);
  linear(norm.scratch, projections_of(weights, args));
  if (weights.head_norm) {
    const TensorView q = by_head(args.q), k = by_head(args.k);
    rmsnorm(q, weights.head_norm->q, norm.eps, q);
    rmsnorm(k, weights.head_norm->k, norm.eps, k);
  }
  rope_append(args);
}

void Backend::gated_linear(const ConstTensorView& x, const Norm& norm, const Projection& gate,
                           const Projection& up) {
  rmsnorm(x, norm.weight, norm.eps, norm.scratch);
  linear(norm.scratch, std::array{gate, up});
  this->gate(gate.out, up.out);
}

void Backend::begin_recording() {
  FP8KV_ASSERT(can_record());
}

Recording Backend::end_recording() {
  FP8KV_ASSERT(can_record());
  return nullptr;
}

void Backend::replay(const Recording& /*recording*/) {
  FP8KV_ASSERT(can_record());
}

}  // namespace fp8kv
