// A backend that hands everything on to another and notes every row of logits that is drawn from,
// by seed and position: what a sequence gets, to the last bit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace fp8kv::test {

class LogitTap : public Backend {
 public:
  using Rows = std::map<std::pair<uint64_t, int32_t>, std::vector<float>>;

  explicit LogitTap(Backend& inner) : inner_(inner) {}

  Rows rows;

  std::string describe() const override { return inner_.describe(); }
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
  void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) override {
    inner_.norm(x, norm, out);
  }
  void compute_as(StepSize size) override { inner_.compute_as(size); }
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
  void project_append(const ConstTensorView& x, const Entry& entry, const AttentionWeights& weights,
                      const RopeAppend& args) override {
    inner_.project_append(x, entry, weights, args);
  }
  void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                 const AttentionOptions& options, const TensorView& out) override {
    inner_.attention(q, kv, batch, options, out);
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
  void hidden(const ConstTensorView& x, const Entry& entry,
              const HiddenProducts& products) override {
    inner_.hidden(x, entry, products);
  }
  void route(const ConstTensorView& logits, const Routing& routing,
             const std::optional<ConstTensorView>& choice_bias, const Routed& out) override {
    inner_.route(logits, routing, choice_bias, out);
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
  void sample(const ConstTensorView& logits, const Sampling& sampling,
              const TensorView& ids) override {
    const auto values = get<float>(logits);
    const auto seeds = get<uint64_t>(sampling.seed);
    const auto positions = get<int32_t>(sampling.position);
    const auto width = static_cast<std::ptrdiff_t>(logits.shape[1]);
    for (size_t i = 0; i < seeds.size(); ++i) {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(i) * width;
      rows[{seeds[i], positions[i]}].assign(row, row + width);
    }
    inner_.sample(logits, sampling, ids);
  }

 private:
  template <typename T>
  std::vector<T> get(const ConstTensorView& view) {
    std::vector<T> values(static_cast<size_t>(view.shape.elements()));
    inner_.download(view, std::as_writable_bytes(std::span(values)));
    return values;
  }

  Backend& inner_;
};

}  // namespace fp8kv::test
