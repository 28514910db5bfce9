// A CPU backend that rounds the result of every op to the model's dtype, like runtimes whose
// activations have that dtype. The CPU backend itself keeps activations in f32, which is more
// precise. Predictions of a runtime's numbers need the runtime's rounding.
#pragma once

#include <span>
#include <vector>

#include "backend/forwarding_backend.h"

namespace fp8kv {

class RoundingBackend final : public ForwardingBackend {
 public:
  // Rounds to `dtype`, bf16 or f16. `inner` outlives this.
  // REQUIRES `inner` to have f32 activations in host memory.
  RoundingBackend(Backend& inner, DType dtype);

  // Whether activations on `backend` are more precise than a runtime's for a model of `dtype`.
  static bool is_needed(const Backend& backend, DType dtype) {
    return dtype != DType::f32 && backend.activation_dtype(dtype) == DType::f32;
  }

  void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) override;
  // Rounds a product before it is added to the residual stream, and the sum again.
  void linear(const ConstTensorView& x, std::span<const Projection> projections) override;
  void linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                    const HeadColumns& out) override;
  void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                 const AttentionOptions& options, const TensorView& out) override;
  void causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) override;
  void recur(const Recurrence& args, const Batch& batch, const TensorView& out) override;
  void activate(Activation activation, const TensorView& x,
                const std::optional<ConstTensorView>& up) override;
  void clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                      const ConstTensorView& up) override;
  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override;
  void gate_rows(const TensorView& x, const ConstTensorView& gates) override;
  void add(const TensorView& x, const ConstTensorView& y, float multiplier) override;
  void scale(const TensorView& x, float multiplier, float cap) override;
  void scale_columns(const TensorView& x, const ColumnFactors& factors) override;
  void mix_streams(const ConstTensorView& x, const ConstTensorView& shares, const StreamSum& how,
                   const TensorView& y) override;
  void match_rms(const TensorView& x, const ConstTensorView& like) override;
  void cut_below(const TensorView& x, float deviations) override;
  void xielu(const TensorView& x, const Xielu& numbers) override;

 private:
  void round(const TensorView& x) const;

  DType dtype_;
  std::vector<Tensor> products_;  // products on their way to the residual stream, reused
};

}  // namespace fp8kv
