#include "model/parts/feed_forward/experts.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "model/parts/projections.h"

namespace fp8kv {
ExpertsForward::ExpertsForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()),
      experts_(*config.experts),
      activation_(config.block.activation),
      gated_(config.block.gated) {
  logits_ = memory.rows(DType::f32, experts_.choices());
  ids_ = memory.rows(DType::i32, experts_.routing.per_token);
  chosen_weights_ = memory.rows(DType::f32, experts_.routing.per_token);
  if (experts_.f32_router) wide_.emplace(memory, config.dim);
  if (experts_.inner_dim > 0) {
    inner_ = memory.rows(experts_.inner_dim);
    inner_made_ = memory.rows(experts_.inner_dim);
  }
  if (experts_.each_norm) {
    const int64_t width = experts_.inner_dim > 0 ? experts_.inner_dim : config.dim;
    each_.emplace(memory, experts_.routing.per_token, width);
  }
  if (experts_.shared_hidden_dim == 0) return;
  if (gated_) shared_gate_ = memory.rows(experts_.shared_hidden_dim);
  shared_up_ = memory.rows(experts_.shared_hidden_dim);
  if (experts_.shared_gated) shared_weights_ = memory.rows(DType::f32, 1);
}

void ExpertsForward::choose(const LayerExperts& weights, const ConstTensorView& x,
                            const std::optional<ConstTensorView>& given) {
  const int64_t n = x.shape[0];
  const TensorView logits = logits_.first(n);
  const ConstTensorView in = wide_ ? wide_->widened(x) : x;
  backend_.linear(in, std::array{project_to(weights.router, logits)});
  if (experts_.router_norm) {
    backend_.scale(logits, 1.0f / std::sqrt(static_cast<float>(x.shape[1])), 0.0f);
  }
  if (experts_.logit_multiplier != 1.0) {
    backend_.scale(logits, static_cast<float>(experts_.logit_multiplier), 0.0f);
  }
  RouterTerms terms = weights.terms;
  if (weights.by_table) terms.given = given.value();
  backend_.route(logits, experts_.routing, terms, chosen(n));
}

Routed ExpertsForward::chosen(int64_t rows) const {
  return {ids_.first(rows), chosen_weights_.first(rows), counts_};
}

// The weighted sum of the chosen experts, for rows x as they take them.
void ExpertsForward::sum(const LayerExperts& weights, const ConstTensorView& x,
                         const TensorView& out) {
  const ExpertMatrices matrices{.addresses = weights.addresses,
                                .dtype = weights.each.front().back().dtype,
                                .hidden_dim = experts_.hidden_dim,
                                .activation = activation_,
                                .weigh_input = experts_.routing.weigh_input,
                                .codes = weights.codes,
                                .biases = weights.biases,
                                .swiglu = weights.swiglu.routed,
                                .gated = gated_,
                                .identities = experts_.identities};
  const Routed routed = chosen(x.shape[0]);
  if (each_) return each_->run(weights, x, routed, matrices, out);
  backend_.experts(x, routed, matrices, out);
}

void ExpertsForward::run(const LayerExperts& weights, const ConstTensorView& x,
                         const TensorView& out) {
  if (weights.in) {
    const TensorView inner = inner_.first(x.shape[0]), made = inner_made_.first(x.shape[0]);
    backend_.linear(x, std::array{project_to(*weights.in, inner)});
    if (weights.in_norm) backend_.norm(inner, *weights.in_norm, inner);
    sum(weights, inner, made);
    if (weights.sum_norm) backend_.norm(made, *weights.sum_norm, made);
    backend_.linear(made, std::array{project_to(weights.out.value(), out)});
  } else {
    sum(weights, x, out);
  }
  if (weights.shared) add_shared(weights, x, out);
}

void ExpertsForward::add_shared(const LayerExperts& weights, const ConstTensorView& x,
                                const TensorView& out) {
  const int64_t n = x.shape[0];
  const auto& [gate, up, down] = *weights.shared;
  const TensorView other = shared_up_.first(n), hidden = gated_ ? shared_gate_.first(n) : other;
  if (gated_) {
    backend_.linear(x, std::array{project_to(gate, hidden), project_to(up, other)});
    if (weights.swiglu.dense) {
      backend_.clamped_swiglu(*weights.swiglu.dense, hidden, other);
    } else {
      backend_.activate(activation_, hidden, other);
    }
  } else {
    backend_.linear(x, std::array{project_to(up, hidden)});
    backend_.activate(activation_, hidden, std::nullopt);
  }
  if (weights.shared_router) {
    const TensorView gates = shared_weights_.first(n);
    backend_.linear(x, std::array{project_to(*weights.shared_router, gates)});
    backend_.gate_rows(hidden, gates);
  }
  backend_.linear(hidden, std::array{project_onto(down, out)});
}

}  // namespace fp8kv
