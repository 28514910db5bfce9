#include "model/parts/latent.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "model/parts/projections.h"

namespace fp8kv {
namespace {

TensorView flat(const TensorView& view) {
  return reshaped(view, {view.shape[0], view.shape.elements() / view.shape[0]});
}

}  // namespace

LatentForward::LatentForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()), latent_(*config.latent), n_heads_(config.n_heads) {
  const auto heads = [&](int64_t size) {
    return memory.make(memory.activation(), Shape{memory.max_rows(), n_heads_, size});
  };
  if (latent_.q_rank > 0) q_down_ = memory.rows(latent_.q_rank);
  q_ = heads(latent_.nope_dim + latent_.rope_dim);
  values_ = heads(latent_.v_dim);
}

void LatentForward::project(const LayerWeights& weights, const ConstTensorView& x,
                            const TensorView& q, const TensorView& k, const TensorView& v) {
  const LatentWeights& latent = *weights.latent;
  const int64_t n = x.shape[0];
  const TensorView heads = q_.first(n);
  const bool in_two = latent.q_down.has_value();
  const TensorView first = in_two ? q_down_.first(n) : flat(heads);
  std::vector<Projection> products = {
      project_to(in_two ? *latent.q_down : weights.attn.q, first),
      project_to(latent.latent, flat(v)),
  };
  if (latent_.rope_dim > 0) products.push_back(project_to(latent.k_rope, flat(k)));
  backend_.linear(x, products);
  if (in_two) {
    backend_.norm(first, latent.q_down_norm.value(), first);
    multiply(first, latent_.q_factor);
    backend_.linear(first, std::array{project_to(weights.attn.q, flat(heads))});
  }
  backend_.norm(flat(v), latent.norm, flat(v));
  multiply(flat(v), latent_.latent_factor);
  if (latent_.rope_dim > 0) {
    backend_.copy_columns({heads, latent_.nope_dim}, {q, 0}, latent_.rope_dim);
  }
  backend_.linear_heads({heads, 0}, latent.k_up, {q, latent_.rope_dim});
}

void LatentForward::multiply(const TensorView& x, double factor) {
  if (factor != 1.0) backend_.scale(x, static_cast<float>(factor), 0.0f);
}

TensorView LatentForward::values(const LatentWeights& weights, const ConstTensorView& attended) {
  const TensorView out = values_.first(attended.shape[0]);
  backend_.linear_heads({attended, 0}, weights.v_up, {out, 0});
  return flat(out);
}

}  // namespace fp8kv
