#include "model/model.h"

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "model/rope.h"

namespace fp8kv {
namespace {

Projection project_to(const Linear& linear, const TensorView& out) {
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
  FP8KV_ASSERT(config.ropes.size() == 1);
  rope_ = to_backend(rope_table(config.ropes[0], config.head_dim(), max_positions));
  no_rope_ = to_backend(rope_table({}, config.head_dim(), 1));  // position 0 turns nothing
  no_positions_ = backend.allocate(DType::i32, Shape{max_rows});
  const auto buffer = [&](int64_t width) {
    return backend.allocate(activation_, Shape{max_rows, width});
  };
  normed_ = buffer(config.dim);
  q_ = buffer(config.n_heads * config.head_dim());
  k_ = buffer(config.n_kv_heads() * config.head_dim());
  v_ = buffer(config.n_kv_heads() * config.head_dim());
  attended_ = buffer(config.n_heads * config.head_dim());
  gate_ = buffer(config.hidden_dim);
  up_ = buffer(config.hidden_dim);
}

Tensor Forward::to_backend(const std::vector<float>& rope_rows) const {
  const Shape shape{static_cast<int64_t>(rope_rows.size()) / config_.head_dim(),
                    config_.head_dim()};
  Tensor tensor = backend_.allocate(DType::f32, shape);
  backend_.copy_in(tensor.view(),
                   {reinterpret_cast<const std::byte*>(rope_rows.data()), DType::f32, shape});
  return tensor;
}

uint64_t Forward::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor* each :
       {&rope_, &no_rope_, &no_positions_, &normed_, &q_, &k_, &v_, &attended_, &gate_, &up_}) {
    bytes += each->view().bytes();
  }
  return bytes;
}

TensorView Forward::scratch(const Tensor& buffer, int64_t rows, int64_t width) const {
  FP8KV_ASSERT(rows <= buffer.view().shape[0]);
  return {buffer.view().data, activation_, Shape{rows, width}};
}

void Forward::layer(int64_t index, const LayerWeights& weights, const TensorView& x,
                    const Batch& batch, const PagedKv& kv,
                    const std::optional<TensorView>& magnitudes, LayerPart part) {
  const AttentionInputs inputs = project(weights, x, batch, kv, magnitudes);
  if (part == LayerPart::up_to_kv) return;
  const TensorView attended = reshaped(
      scratch(attended_, x.shape[0], config_.n_heads * config_.head_dim()), inputs.q.shape);
  attend(index, inputs, batch, kv, attended);
  finish(weights, attended, x);
}

AttentionInputs Forward::project(const LayerWeights& weights, const ConstTensorView& x,
                                 const Batch& batch, const PagedKv& kv,
                                 const std::optional<TensorView>& magnitudes) {
  const int64_t n = x.shape[0];
  const int64_t heads = config_.n_heads, kv_heads = config_.n_kv_heads(), size = config_.head_dim();
  const AttentionInputs inputs{
      reshaped(scratch(q_, n, heads * size), {n, heads, size}),
      reshaped(scratch(k_, n, kv_heads * size), {n, kv_heads, size}),
      reshaped(scratch(v_, n, kv_heads * size), {n, kv_heads, size}),
  };
  backend_.project_append(x, norm(weights.attn_norm, n), weights.attn,
                          rotation(inputs, rope_.view(), batch, kv, magnitudes));
  return inputs;
}

void Forward::append(const AttentionInputs& inputs, const Batch& batch, const PagedKv& kv) {
  Batch unturned = batch;
  unturned.positions = {no_positions_.view().data, DType::i32, Shape{inputs.q.shape[0]}};
  backend_.rope_append(rotation(inputs, no_rope_.view(), unturned, kv, std::nullopt));
}

Norm Forward::norm(const ConstTensorView& weight, int64_t rows) const {
  return {weight, static_cast<float>(config_.norm_eps), scratch(normed_, rows, config_.dim)};
}

RopeAppend Forward::rotation(const AttentionInputs& inputs, const ConstTensorView& rope,
                             const Batch& batch, const PagedKv& kv,
                             const std::optional<TensorView>& magnitudes) const {
  return {.q = inputs.q,
          .k = inputs.k,
          .v = inputs.v,
          .rope = rope,
          .batch = batch,
          .kv = kv,
          .round_to = config_.dtype,
          .magnitudes = magnitudes};
}

void Forward::attend(int64_t index, const AttentionInputs& inputs, const Batch& batch,
                     const PagedKv& kv, const TensorView& out) {
  const AttentionOptions options{.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim())),
                                 .window = config_.window(index)};
  backend_.attention(inputs.q, kv, batch, options, out);
}

void Forward::finish(const LayerWeights& weights, const ConstTensorView& attended,
                     const TensorView& x) {
  const int64_t n = x.shape[0];
  const ConstTensorView flat{attended.data, attended.dtype,
                             Shape{n, config_.n_heads * config_.head_dim()}};
  backend_.linear(flat, std::array{project_onto(weights.o, x)});
  const TensorView gate = scratch(gate_, n, config_.hidden_dim);
  const TensorView up = scratch(up_, n, config_.hidden_dim);
  backend_.gated_linear(x, norm(weights.ffn_norm, n), project_to(weights.gate, gate),
                        project_to(weights.up, up));
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
