#include "model/model.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "model/rope.h"

namespace fp8kv {
namespace {

Projection project(const Linear& linear, const TensorView& out) {
  return {linear.weight, linear.bias, out, false};
}

// The residual connection: what the block gives is added to the stream.
Projection project_onto(const Linear& linear, const TensorView& stream) {
  return {linear.weight, linear.bias, stream, true};
}

}  // namespace

Forward::Forward(Backend& backend, const ModelConfig& config, int64_t max_rows,
                 int64_t max_positions)
    : backend_(backend), config_(config), activation_(backend.activation_dtype(config.dtype)) {
  const std::vector<float> table = rope_table(config.rope, config.head_dim, max_positions);
  const Shape shape{max_positions, config.head_dim};
  rope_ = backend.allocate(DType::f32, shape);
  backend.copy_in(rope_.view(),
                  {reinterpret_cast<const std::byte*>(table.data()), DType::f32, shape});
  const auto buffer = [&](int64_t width) {
    return backend.allocate(activation_, Shape{max_rows, width});
  };
  normed_ = buffer(config.dim);
  q_ = buffer(config.n_heads * config.head_dim);
  k_ = buffer(config.n_kv_heads * config.head_dim);
  v_ = buffer(config.n_kv_heads * config.head_dim);
  attended_ = buffer(config.n_heads * config.head_dim);
  gate_ = buffer(config.hidden_dim);
  up_ = buffer(config.hidden_dim);
}

TensorView Forward::scratch(const Tensor& buffer, int64_t rows, int64_t width) const {
  FP8KV_ASSERT(rows <= buffer.view().shape[0]);
  return {buffer.view().data, activation_, Shape{rows, width}};
}

void Forward::embed(const ConstTensorView& embedding, const ConstTensorView& ids,
                    const TensorView& x) {
  backend_.embed(embedding, ids, x);
}

void Forward::layer(int64_t index, const LayerWeights& weights, const TensorView& x,
                    const Batch& batch, const PagedKv& kv,
                    const std::optional<TensorView>& magnitudes, LayerPart part) {
  const int64_t n = x.shape[0];
  const int64_t heads = config_.n_heads, kv_heads = config_.n_kv_heads, size = config_.head_dim;
  const auto eps = static_cast<float>(config_.norm_eps);
  const TensorView normed = scratch(normed_, n, config_.dim);
  const TensorView q = scratch(q_, n, heads * size);
  const TensorView k = scratch(k_, n, kv_heads * size);
  const TensorView v = scratch(v_, n, kv_heads * size);
  const TensorView q_heads = reshaped(q, {n, heads, size});

  backend_.rmsnorm(x, weights.attn_norm, eps, normed);
  backend_.linear(normed,
                  std::array{project(weights.q, q), project(weights.k, k), project(weights.v, v)});
  backend_.rope_append({.q = q_heads,
                        .k = reshaped(k, {n, kv_heads, size}),
                        .v = reshaped(v, {n, kv_heads, size}),
                        .rope = rope_.view(),
                        .batch = batch,
                        .kv = kv,
                        .round_to = config_.dtype,
                        .magnitudes = magnitudes});
  if (part == LayerPart::up_to_kv) return;

  const TensorView attended = scratch(attended_, n, heads * size);
  const AttentionOptions options{.scale = 1.0f / std::sqrt(static_cast<float>(size)),
                                 .window = config_.layer_window(index)};
  backend_.attention(q_heads, kv, batch, options, reshaped(attended, {n, heads, size}));
  backend_.linear(attended, std::array{project_onto(weights.o, x)});

  const TensorView gate = scratch(gate_, n, config_.hidden_dim);
  const TensorView up = scratch(up_, n, config_.hidden_dim);
  backend_.rmsnorm(x, weights.ffn_norm, eps, normed);
  backend_.linear(normed, std::array{project(weights.gate, gate), project(weights.up, up)});
  backend_.gate(gate, up);
  backend_.linear(gate, std::array{project_onto(weights.down, x)});
}

void Forward::head(const HeadWeights& weights, const TensorView& x, const ConstTensorView& rows,
                   const TensorView& logits) {
  const int64_t n = rows.shape[0];
  const TensorView chosen = scratch(normed_, n, config_.dim);
  backend_.embed(x, rows, chosen);
  backend_.rmsnorm(chosen, weights.norm, static_cast<float>(config_.norm_eps), chosen);
  backend_.linear(chosen, std::array{Projection{weights.lm_head, std::nullopt, logits, false}});
}

}  // namespace fp8kv
