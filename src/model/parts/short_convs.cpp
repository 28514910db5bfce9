#include "model/parts/short_convs.h"

namespace fp8kv {

CausalConv short_conv(const ConstTensorView& weight, const TensorView& state) {
  CausalConv conv{weight, std::nullopt, state};
  conv.silu = false;
  conv.adds_input = true;
  return conv;
}

void project_convolved(Backend& backend, const ConstTensorView& x, const LayerWeights& weights,
                       const RopeAppend& args, const ConvStep& step) {
  const int64_t n = x.shape[0];
  const auto convolve = [&](const TensorView& heads, const ConstTensorView& weight,
                            const TensorView& before) {
    backend.causal_conv(reshaped(heads, {n, heads.shape[1] * heads.shape[2]}),
                        short_conv(weight, before), step.batch);
  };
  const auto norm = [&](const TensorView& heads, const Norm& own) {
    const TensorView rows = reshaped(heads, {n * heads.shape[1], heads.shape[2]});
    backend.norm(rows, own, rows);
  };
  backend.linear(x, projections_of(weights.attn, args));
  if (weights.short_convs) {
    convolve(args.k, weights.short_convs->k, step.state.short_k);
    convolve(args.v, weights.short_convs->v, step.state.short_v);
  }
  if (weights.attn.norms) {
    norm(args.q, weights.attn.norms->q);
    norm(args.k, weights.attn.norms->k);
  }
  backend.rope_append(args);
}

}  // namespace fp8kv
