// A backend that forwards everything to another. Backends that observe or change some ops derive
// from it. The two composed ops, project_append and hidden, arrive as the ops that they are made
// of.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace fp8kv {

class ForwardingBackend : public Backend {
 public:
  // `inner` outlives this.
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}

  std::string describe() const override { return inner_.describe(); }
  std::vector<std::pair<std::string, std::string>> details() const override {
    return inner_.details();
  }
  DType activation_dtype(DType model) const override { return inner_.activation_dtype(model); }
  Tensor allocate(DType dtype, const Shape& shape) override {
    return inner_.allocate(dtype, shape);
  }
  Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> keep_alive) override {
    return inner_.upload(host, std::move(keep_alive));
  }
  void copy_in(const TensorView& to, const ConstTensorView& host) override {
    inner_.copy_in(to, host);
  }
  void download(const ConstTensorView& from, std::span<std::byte> host) override {
    inner_.download(from, host);
  }
  Transfers* transfers() override { return inner_.transfers(); }
  std::optional<DeviceMemory> memory() const override { return inner_.memory(); }
  uint64_t op_memory(const StepShape& shape) const override { return inner_.op_memory(shape); }
  void compute_as(StepSize size) override { inner_.compute_as(size); }
  void embed(const ConstTensorView& table, const ConstTensorView& ids,
             const TensorView& out) override {
    inner_.embed(table, ids, out);
  }
  void arrange(const ConstTensorView& from, Steps steps, const TensorView& to) override {
    inner_.arrange(from, steps, to);
  }
  void decode_weights(const QuantisedMatrix& matrix, const TensorView& to) override {
    inner_.decode_weights(matrix, to);
  }
  std::optional<QuantisedMatrix> in_place(const QuantisedMatrix& matrix, DType compute,
                                          WeightUse use, std::vector<Tensor>& storage) override {
    return inner_.in_place(matrix, compute, use, storage);
  }
  void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) override {
    inner_.norm(x, norm, out);
  }
  void linear(const ConstTensorView& x, std::span<const Projection> projections) override {
    inner_.linear(x, projections);
  }
  void linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                    const HeadColumns& out) override {
    inner_.linear_heads(x, weights, out);
  }
  void copy_columns(const ConstHeadColumns& from, const HeadColumns& to, int64_t count) override {
    inner_.copy_columns(from, to, count);
  }
  void rope_append(const RopeAppend& args) override { inner_.rope_append(args); }
  void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                 const AttentionOptions& options, const TensorView& out) override {
    inner_.attention(q, kv, batch, options, out);
  }
  void append_pooled(const PooledAppend& args) override { inner_.append_pooled(args); }
  void choose_tokens(const TokenScores& args, const Batch& batch,
                     const TensorView& chosen) override {
    inner_.choose_tokens(args, batch, chosen);
  }
  void pool_tokens(const TokenPools& args, const Batch& batch, const TensorView& out) override {
    inner_.pool_tokens(args, batch, out);
  }
  void causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) override {
    inner_.causal_conv(x, conv, batch);
  }
  void recur(const Recurrence& args, const Batch& batch, const TensorView& out) override {
    inner_.recur(args, batch, out);
  }
  void activate(Activation activation, const TensorView& x,
                const std::optional<ConstTensorView>& up) override {
    inner_.activate(activation, x, up);
  }
  void clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                      const ConstTensorView& up) override {
    inner_.clamped_swiglu(how, gate, up);
  }
  void route(const ConstTensorView& logits, const Routing& routing, const RouterTerms& terms,
             const Routed& out) override {
    inner_.route(logits, routing, terms, out);
  }
  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override {
    inner_.experts(x, routed, matrices, out);
  }
  void gate_rows(const TensorView& x, const ConstTensorView& gates) override {
    inner_.gate_rows(x, gates);
  }
  void add(const TensorView& x, const ConstTensorView& y, float multiplier) override {
    inner_.add(x, y, multiplier);
  }
  void scale(const TensorView& x, float multiplier, float cap) override {
    inner_.scale(x, multiplier, cap);
  }
  void scale_columns(const TensorView& x, const ColumnFactors& factors) override {
    inner_.scale_columns(x, factors);
  }
  void mix_streams(const ConstTensorView& x, const ConstTensorView& shares, const StreamSum& how,
                   const TensorView& y) override {
    inner_.mix_streams(x, shares, how, y);
  }
  void hyper_shares(const HyperRows& rows, const HyperConfig& config,
                    const HyperShares& out) override {
    inner_.hyper_shares(rows, config, out);
  }
  void stream_gates(const ConstTensorView& keys, const ConstTensorView& queries,
                    const TensorView& gates) override {
    inner_.stream_gates(keys, queries, gates);
  }
  void match_rms(const TensorView& x, const ConstTensorView& like) override {
    inner_.match_rms(x, like);
  }
  void cut_below(const TensorView& x, float deviations) override {
    inner_.cut_below(x, deviations);
  }
  void xielu(const TensorView& x, const Xielu& numbers) override { inner_.xielu(x, numbers); }
  void amax(const ConstTensorView& x, const TensorView& out) override { inner_.amax(x, out); }
  void sample(const ConstTensorView& logits, const Sampling& sampling,
              const TensorView& ids) override {
    inner_.sample(logits, sampling, ids);
  }

 protected:
  Backend& inner() { return inner_; }

 private:
  Backend& inner_;
};

}  // namespace fp8kv
