#include "backend/measuring_backend.h"

#include "base/error.h"

namespace fp8kv {
namespace {

[[noreturn]] void computes_nothing() {
  assertion_failed("MeasuringBackend computes nothing", __FILE__, __LINE__);
}

}  // namespace

Tensor MeasuringBackend::allocate(DType dtype, const Shape& shape) {
  const TensorView view{nullptr, dtype, shape};
  bytes_ += view.bytes();
  return {view, nullptr};
}

Tensor MeasuringBackend::upload(const ConstTensorView& host, std::shared_ptr<const void>) {
  return allocate(host.dtype, host.shape);
}

void MeasuringBackend::download(const ConstTensorView&, std::span<std::byte>) {
  computes_nothing();
}
void MeasuringBackend::embed(const ConstTensorView&, const ConstTensorView&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::norm(const ConstTensorView&, const Norm&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::linear(const ConstTensorView&, std::span<const Projection>) {
  computes_nothing();
}
void MeasuringBackend::linear_heads(const ConstHeadColumns&, const ConstTensorView&,
                                    const HeadColumns&) {
  computes_nothing();
}
void MeasuringBackend::copy_columns(const ConstHeadColumns&, const HeadColumns&, int64_t) {
  computes_nothing();
}
void MeasuringBackend::rope_append(const RopeAppend&) {
  computes_nothing();
}
void MeasuringBackend::attention(const ConstTensorView&, const PagedKv&, const Batch&,
                                 const AttentionOptions&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::append_pooled(const PooledAppend&) {
  computes_nothing();
}
void MeasuringBackend::choose_tokens(const TokenScores&, const Batch&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::pool_tokens(const TokenPools&, const Batch&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::causal_conv(const TensorView&, const CausalConv&, const Batch&) {
  computes_nothing();
}
void MeasuringBackend::recur(const Recurrence&, const Batch&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::activate(Activation, const TensorView&,
                                const std::optional<ConstTensorView>&) {
  computes_nothing();
}
void MeasuringBackend::clamped_swiglu(const ClampedSwiglu&, const TensorView&,
                                      const ConstTensorView&) {
  computes_nothing();
}
void MeasuringBackend::route(const ConstTensorView&, const Routing&, const RouterTerms&,
                             const Routed&) {
  computes_nothing();
}
void MeasuringBackend::experts(const ConstTensorView&, const Routed&, const ExpertMatrices&,
                               const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::gate_rows(const TensorView&, const ConstTensorView&) {
  computes_nothing();
}
void MeasuringBackend::add(const TensorView&, const ConstTensorView&, float) {
  computes_nothing();
}
void MeasuringBackend::scale(const TensorView&, float, float) {
  computes_nothing();
}
void MeasuringBackend::scale_columns(const TensorView&, const ColumnFactors&) {
  computes_nothing();
}
void MeasuringBackend::mix_streams(const ConstTensorView&, const ConstTensorView&, const StreamSum&,
                                   const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::hyper_shares(const HyperRows&, const HyperConfig&, const HyperShares&) {
  computes_nothing();
}
void MeasuringBackend::stream_gates(const ConstTensorView&, const ConstTensorView&,
                                    const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::match_rms(const TensorView&, const ConstTensorView&) {
  computes_nothing();
}
void MeasuringBackend::cut_below(const TensorView&, float) {
  computes_nothing();
}
void MeasuringBackend::xielu(const TensorView&, const Xielu&) {
  computes_nothing();
}

void MeasuringBackend::amax(const ConstTensorView&, const TensorView&) {
  computes_nothing();
}
void MeasuringBackend::sample(const ConstTensorView&, const Sampling&, const TensorView&) {
  computes_nothing();
}

}  // namespace fp8kv
