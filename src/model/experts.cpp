#include "model/experts.h"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

Projection project(const Linear& linear, const TensorView& out, bool accumulate = false) {
  return {linear.weight, linear.bias, out, accumulate, linear.codes};
}

}  // namespace

ExpertsForward::ExpertsForward(Backend& backend, const ModelConfig& config, int64_t max_rows)
    : backend_(backend),
      experts_(*config.experts),
      activation_(config.block.activation),
      gated_(config.block.gated) {
  logits_ = backend.allocate(DType::f32, Shape{max_rows, experts_.count});
  ids_ = backend.allocate(DType::i32, Shape{max_rows, experts_.routing.per_token});
  chosen_weights_ = backend.allocate(DType::f32, Shape{max_rows, experts_.routing.per_token});
  const DType dtype = backend.activation_dtype(config.dtype);
  if (experts_.f32_router && dtype != DType::f32) {
    wide_ = backend.allocate(DType::f32, Shape{max_rows, config.dim});
    std::vector<int32_t> rows(static_cast<size_t>(max_rows));
    std::iota(rows.begin(), rows.end(), 0);
    rows_ = backend.allocate(DType::i32, Shape{max_rows});
    backend.copy_in(rows_.view(), {reinterpret_cast<const std::byte*>(rows.data()), DType::i32,
                                   rows_.view().shape});
  }
  if (experts_.inner_dim > 0) {
    inner_ = backend.allocate(dtype, Shape{max_rows, experts_.inner_dim});
    inner_made_ = backend.allocate(dtype, Shape{max_rows, experts_.inner_dim});
  }
  if (experts_.shared_hidden_dim == 0) return;
  if (gated_) shared_gate_ = backend.allocate(dtype, Shape{max_rows, experts_.shared_hidden_dim});
  shared_up_ = backend.allocate(dtype, Shape{max_rows, experts_.shared_hidden_dim});
  if (experts_.shared_gated) shared_weights_ = backend.allocate(DType::f32, Shape{max_rows, 1});
}

uint64_t ExpertsForward::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor* each : {&logits_, &ids_, &chosen_weights_, &wide_, &rows_, &inner_,
                             &inner_made_, &shared_gate_, &shared_up_, &shared_weights_}) {
    if (each->view().shape.rank() > 0) bytes += each->view().bytes();
  }
  return bytes;
}

void ExpertsForward::choose(const LayerExperts& weights, const ConstTensorView& x) {
  const int64_t n = x.shape[0];
  const TensorView logits = logits_.first(n);
  ConstTensorView in = x;
  if (wide_.view().shape.rank() > 0) {
    // Looking up row i for row i gives the same numbers in F32.
    backend_.embed(x, rows_.first(n), wide_.first(n));
    in = wide_.first(n);
  }
  backend_.linear(in, std::array{project(weights.router, logits)});
  if (experts_.router_norm) {
    backend_.scale(logits, 1.0f / std::sqrt(static_cast<float>(x.shape[1])), 0.0f);
  }
  backend_.route(logits, experts_.routing, weights.terms, chosen(n));
}

Routed ExpertsForward::chosen(int64_t rows) const {
  return {ids_.first(rows), chosen_weights_.first(rows), counts_};
}

void ExpertsForward::run(const LayerExperts& weights, const ConstTensorView& x,
                         const TensorView& out) {
  const ExpertMatrices matrices{.addresses = weights.addresses,
                                .dtype = weights.each.front().back().dtype,
                                .hidden_dim = experts_.hidden_dim,
                                .activation = activation_,
                                .weigh_input = experts_.routing.weigh_input,
                                .codes = weights.codes,
                                .biases = weights.biases,
                                .swiglu = experts_.swiglu,
                                .gated = gated_};
  const Routed routed = chosen(x.shape[0]);
  if (weights.in) {
    const TensorView inner = inner_.first(x.shape[0]), made = inner_made_.first(x.shape[0]);
    backend_.linear(x, std::array{project(*weights.in, inner)});
    backend_.experts(inner, routed, matrices, made);
    backend_.linear(made, std::array{project(weights.out.value(), out)});
  } else {
    backend_.experts(x, routed, matrices, out);
  }
  if (weights.shared) add_shared(weights, x, out);
}

void ExpertsForward::add_shared(const LayerExperts& weights, const ConstTensorView& x,
                                const TensorView& out) {
  const int64_t n = x.shape[0];
  const auto& [gate, up, down] = *weights.shared;
  const TensorView other = shared_up_.first(n), hidden = gated_ ? shared_gate_.first(n) : other;
  if (gated_) {
    backend_.linear(x, std::array{project(gate, hidden), project(up, other)});
    backend_.activate(activation_, hidden, other);
  } else {
    backend_.linear(x, std::array{project(up, hidden)});
    backend_.activate(activation_, hidden, std::nullopt);
  }
  if (weights.shared_router) {
    const TensorView gates = shared_weights_.first(n);
    backend_.linear(x, std::array{project(*weights.shared_router, gates)});
    backend_.gate_rows(hidden, gates);
  }
  backend_.linear(hidden, std::array{project(down, out, true)});
}

}  // namespace fp8kv
