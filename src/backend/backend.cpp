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

std::vector<Projection> projections_of(const AttentionWeights& weights, const RopeAppend& args) {
  const auto to = [](const Linear& linear, const TensorView& out) {
    return Projection{linear.weight, linear.bias, flat(out), false, linear.codes};
  };
  if (args.k.shape[1] == 0) return {to(weights.q, args.q)};
  return {to(weights.q, args.q), to(weights.k, args.k), to(weights.v, args.v)};
}

ConstTensorView Backend::enter(const ConstTensorView& x, const InputNorm& entry) {
  if (!entry.norm) return x;
  norm(x, *entry.norm, entry.scratch);
  return entry.scratch;
}

void Backend::project_append(const ConstTensorView& x, const InputNorm& entry,
                             const AttentionWeights& weights, const RopeAppend& args) {
  linear(enter(x, entry), projections_of(weights, args));
  if (weights.norms) {
    const bool whole = weights.norms->whole;
    const auto norm_rows = [&](const Norm& own, const TensorView& rows) { norm(rows, own, rows); };
    norm_rows(weights.norms->q, whole ? flat(args.q) : by_head(args.q));
    if (args.k.shape[1] > 0) {
      norm_rows(weights.norms->k, whole ? flat(args.k) : by_head(args.k));
      if (weights.norms->v) norm_rows(*weights.norms->v, by_head(args.v));
    }
  }
  rope_append(args);
}

void Backend::hidden(const ConstTensorView& x, const InputNorm& entry,
                     const HiddenProducts& products) {
  const ConstTensorView entered = enter(x, entry);
  if (products.gate) {
    linear(entered, std::array{*products.gate, products.up});
    activate(products.activation, products.gate->out, products.up.out);
  } else {
    linear(entered, std::array{products.up});
    activate(products.activation, products.up.out, std::nullopt);
  }
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
