#include "model/latent.h"

#include <array>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

Projection projection_to(const Linear& linear, const TensorView& out) {
  return {linear.weight, linear.bias, out, false, linear.codes};
}

TensorView flat(const TensorView& view) {
  return reshaped(view, {view.shape[0], view.shape.elements() / view.shape[0]});
}

}  // namespace

LatentForward::LatentForward(Backend& backend, const ModelConfig& config, int64_t max_rows)
    : backend_(backend), latent_(*config.latent), n_heads_(config.n_heads) {
  const DType dtype = backend.activation_dtype(config.dtype);
  if (latent_.q_rank > 0) q_down_ = backend.allocate(dtype, Shape{max_rows, latent_.q_rank});
  q_ = backend.allocate(dtype, Shape{max_rows, n_heads_, latent_.nope_dim + latent_.rope_dim});
  values_ = backend.allocate(dtype, Shape{max_rows, n_heads_, latent_.v_dim});
}

uint64_t LatentForward::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor* each : {&q_down_, &q_, &values_}) {
    if (each->view().shape.rank() > 0) bytes += each->view().bytes();
  }
  return bytes;
}

void LatentForward::project(const LayerWeights& weights, const ConstTensorView& x,
                            const TensorView& q, const TensorView& k, const TensorView& v) {
  const LatentWeights& latent = *weights.latent;
  const int64_t n = x.shape[0];
  const TensorView heads = q_.first(n);
  const bool in_two = latent.q_down.has_value();
  const TensorView first = in_two ? q_down_.first(n) : flat(heads);
  backend_.linear(
      x, std::array{projection_to(in_two ? *latent.q_down : weights.attn.q, first),
                    projection_to(latent.k_rope, flat(k)), projection_to(latent.latent, flat(v))});
  if (in_two) {
    backend_.norm(first, latent.q_down_norm.value(), first);
    backend_.linear(first, std::array{projection_to(weights.attn.q, flat(heads))});
  }
  backend_.norm(flat(v), latent.norm, flat(v));
  backend_.copy_columns({heads, latent_.nope_dim}, {q, 0}, latent_.rope_dim);
  backend_.linear_heads({heads, 0}, latent.k_up, {q, latent_.rope_dim});
}

TensorView LatentForward::values(const LatentWeights& weights, const ConstTensorView& attended) {
  const TensorView out = values_.first(attended.shape[0]);
  backend_.linear_heads({attended, 0}, weights.v_up, {out, 0});
  return flat(out);
}

}  // namespace fp8kv
