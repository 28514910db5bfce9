#include "backend/rounding_backend.h"

#include <algorithm>

#include "base/error.h"
#include "core/numbers/half.h"

namespace fp8kv {

RoundingBackend::RoundingBackend(Backend& inner, DType dtype)
    : ForwardingBackend(inner), dtype_(dtype) {
  FP8KV_ASSERT(is_needed(inner, dtype));
}

void RoundingBackend::round(const TensorView& x) const {
  FP8KV_ASSERT(x.dtype == DType::f32);
  const std::span<float> elements(x.as<float>(), static_cast<size_t>(x.shape.elements()));
  if (dtype_ == DType::bf16) {
    for (float& each : elements) each = bf16_to_float(bf16_from_float(each));
  } else {
    for (float& each : elements) each = f16_to_float(f16_from_float(each));
  }
}

void RoundingBackend::norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) {
  inner().norm(x, norm, out);
  round(out);
}

void RoundingBackend::linear(const ConstTensorView& x, std::span<const Projection> projections) {
  std::vector<Projection> apart(projections.begin(), projections.end());
  products_.resize(std::max(products_.size(), apart.size()));
  for (size_t i = 0; i < apart.size(); ++i) {
    if (!apart[i].accumulate) continue;
    const TensorView& out = projections[i].out;
    Tensor& product = products_[i];
    if (product.empty() || product.view().bytes() < out.bytes()) {
      product = allocate(out.dtype, out.shape);
    }
    apart[i].out = {product.view().data, out.dtype, out.shape};
    apart[i].accumulate = false;
  }
  inner().linear(x, apart);
  for (size_t i = 0; i < apart.size(); ++i) {
    round(apart[i].out);
    if (projections[i].accumulate) add(projections[i].out, apart[i].out, 1.0f);
  }
}

void RoundingBackend::linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                                   const HeadColumns& out) {
  inner().linear_heads(x, weights, out);
  round(out.rows);
}

void RoundingBackend::attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                                const AttentionOptions& options, const TensorView& out) {
  inner().attention(q, kv, batch, options, out);
  round(out);
}

void RoundingBackend::causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) {
  inner().causal_conv(x, conv, batch);
  round(x);
}

void RoundingBackend::recur(const Recurrence& args, const Batch& batch, const TensorView& out) {
  inner().recur(args, batch, out);
  round(out);
}

void RoundingBackend::activate(Activation activation, const TensorView& x,
                               const std::optional<ConstTensorView>& up) {
  inner().activate(activation, x, up);
  round(x);
}

void RoundingBackend::clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                                     const ConstTensorView& up) {
  inner().clamped_swiglu(how, gate, up);
  round(gate);
}

void RoundingBackend::experts(const ConstTensorView& x, const Routed& routed,
                              const ExpertMatrices& matrices, const TensorView& out) {
  inner().experts(x, routed, matrices, out);
  round(out);
}

void RoundingBackend::gate_rows(const TensorView& x, const ConstTensorView& gates) {
  inner().gate_rows(x, gates);
  round(x);
}

void RoundingBackend::add(const TensorView& x, const ConstTensorView& y, float multiplier) {
  inner().add(x, y, multiplier);
  round(x);
}

void RoundingBackend::scale(const TensorView& x, float multiplier, float cap) {
  inner().scale(x, multiplier, cap);
  round(x);
}

void RoundingBackend::scale_columns(const TensorView& x, const ColumnFactors& factors) {
  inner().scale_columns(x, factors);
  round(x);
}

void RoundingBackend::mix_streams(const ConstTensorView& x, const ConstTensorView& shares,
                                  const StreamSum& how, const TensorView& y) {
  inner().mix_streams(x, shares, how, y);
  round(y);
}

void RoundingBackend::match_rms(const TensorView& x, const ConstTensorView& like) {
  inner().match_rms(x, like);
  round(x);
}

void RoundingBackend::cut_below(const TensorView& x, float deviations) {
  inner().cut_below(x, deviations);
  round(x);
}

void RoundingBackend::xielu(const TensorView& x, const Xielu& numbers) {
  inner().xielu(x, numbers);
  round(x);
}

}  // namespace fp8kv
