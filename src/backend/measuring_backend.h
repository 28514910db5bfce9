// A backend that computes nothing and counts the bytes it is asked for, to learn what a plan would
// take before anything is allocated.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace fp8kv {

// Its memory has no contents: it can be allocated, copied into and arranged, nothing else.
class MeasuringBackend final : public Backend {
 public:
  // Uses the activation dtype of `like`, which has to outlive this.
  explicit MeasuringBackend(const Backend& like) : like_(like) {}

  uint64_t bytes() const { return bytes_; }  // of all that was allocated

  std::string describe() const override { return like_.describe(); }
  DType activation_dtype(DType model) const override { return like_.activation_dtype(model); }
  Tensor allocate(DType dtype, const Shape& shape) override;
  Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> keep_alive) override;
  void copy_in(const TensorView&, const ConstTensorView&) override {}
  void download(const ConstTensorView&, std::span<std::byte>) override;
  void arrange(const ConstTensorView&, Steps, const TensorView&) override {}
  void decode_weights(const QuantisedMatrix&, const TensorView&) override {}
  void embed(const ConstTensorView&, const ConstTensorView&, const TensorView&) override;
  void norm(const ConstTensorView&, const Norm&, const TensorView&) override;
  void linear(const ConstTensorView&, std::span<const Projection>) override;
  void linear_heads(const ConstHeadColumns&, const ConstTensorView&, const HeadColumns&) override;
  void copy_columns(const ConstHeadColumns&, const HeadColumns&, int64_t) override;
  void rope_append(const RopeAppend&) override;
  void attention(const ConstTensorView&, const PagedKv&, const Batch&, const AttentionOptions&,
                 const TensorView&) override;
  void append_pooled(const PooledAppend&) override;
  void choose_tokens(const TokenScores&, const Batch&, const TensorView&) override;
  void pool_tokens(const TokenPools&, const Batch&, const TensorView&) override;
  void causal_conv(const TensorView&, const CausalConv&, const Batch&) override;
  void recur(const Recurrence&, const Batch&, const TensorView&) override;
  void activate(Activation, const TensorView&, const std::optional<ConstTensorView>&) override;
  void clamped_swiglu(const ClampedSwiglu&, const TensorView&, const ConstTensorView&) override;
  void route(const ConstTensorView&, const Routing&, const RouterTerms&, const Routed&) override;
  void experts(const ConstTensorView&, const Routed&, const ExpertMatrices&,
               const TensorView&) override;
  void gate_rows(const TensorView&, const ConstTensorView&) override;
  void add(const TensorView&, const ConstTensorView&, float) override;
  void scale(const TensorView&, float, float) override;
  void amax(const ConstTensorView&, const TensorView&) override;
  void scale_columns(const TensorView&, const ColumnFactors&) override;
  void mix_streams(const ConstTensorView&, const ConstTensorView&, const StreamSum&,
                   const TensorView&) override;
  void hyper_shares(const HyperRows&, const HyperConfig&, const HyperShares&) override;
  void stream_gates(const ConstTensorView&, const ConstTensorView&, const TensorView&) override;
  void match_rms(const TensorView&, const ConstTensorView&) override;
  void cut_below(const TensorView&, float) override;
  void xielu(const TensorView&, const Xielu&) override;
  void sample(const ConstTensorView&, const Sampling&, const TensorView&) override;

 private:
  const Backend& like_;
  uint64_t bytes_ = 0;
};

}  // namespace fp8kv
