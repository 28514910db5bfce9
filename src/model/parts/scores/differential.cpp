#include "model/parts/scores/differential.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace fp8kv {
namespace {

// The cache of half of the KV heads, whose pages are numbered by Batch::half_pages. K and V may be
// of different halves.
PagedKv half_of(const PagedKv& kv, int64_t half_of_k, int64_t half_of_v) {
  PagedKv half = kv;
  half.n_kv_heads = kv.n_kv_heads / 2;
  const int64_t rows = int64_t{half.n_kv_heads} * kv.page_size;
  half.k = static_cast<std::byte*>(kv.k) + half_of_k * rows * kv.k_row().bytes();
  half.v = static_cast<std::byte*>(kv.v) + half_of_v * rows * kv.v_row().bytes();
  if (kv.k_scale != nullptr) half.k_scale = kv.k_scale + half_of_k * half.n_kv_heads;
  if (kv.v_scale != nullptr) half.v_scale = kv.v_scale + half_of_v * half.n_kv_heads;
  return half;
}

TensorView first_rows(const Tensor& buffer, const Shape& shape) {
  return {buffer.view().data, buffer.view().dtype, shape};
}

TensorView as_matrix(const TensorView& x) {
  return reshaped(x, {x.shape[0], x.shape.elements() / x.shape[0]});
}

// Rows x [n, heads, size] as if each had one head, for copy_columns.
TensorView as_one_head(const TensorView& x) {
  return reshaped(x, {x.shape[0], 1, x.shape.elements() / x.shape[0]});
}

}  // namespace

DifferentialForward::DifferentialForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()) {
  int64_t q_size = 0, v_size = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    q_size = std::max(q_size, config.n_heads_of(i) / 2 * config.layer(i).k_head_dim);
    v_size = std::max(v_size, config.n_heads_of(i) / 2 * config.layer(i).v_head_dim);
  }
  for (Tensor& each : q_) each = memory.rows(q_size);
  for (Tensor& each : attended_) each = memory.rows(v_size);
}

void DifferentialForward::attend(const AttentionInputs& inputs, const PagedKv& kv,
                                 const Batch& batch, const AttentionOptions& options,
                                 const TensorView& out) {
  FP8KV_ASSERT(batch.half_pages.data != nullptr);
  const DifferentialWeights& weights = inputs.differential.value();
  const int64_t n = inputs.q.shape[0], heads = inputs.q.shape[1] / 2;
  const int64_t size = inputs.q.shape[2], v_size = out.shape[2];
  Batch by_halves = batch;
  by_halves.page_table = batch.half_pages;
  TensorView q[2], attended[2];
  for (int half = 0; half < 2; ++half) {
    q[half] = first_rows(q_[half], {n, heads, size});
    attended[half] = first_rows(attended_[half], {n, heads, v_size});
    backend_.copy_columns({as_one_head(inputs.q), half * heads * size}, {as_one_head(q[half])},
                          heads * size);
  }
  const TensorView outputs = reshaped(out, {n, heads, 2 * v_size});
  for (int half_of_v = 0; half_of_v < 2; ++half_of_v) {
    for (int half = 0; half < 2; ++half) {
      backend_.attention(q[half], half_of(kv, half, half_of_v), by_halves, options, attended[half]);
    }
    backend_.add(as_matrix(attended[0]), as_matrix(attended[1]), -weights.lambda);
    backend_.copy_columns({attended[0]}, {outputs, half_of_v * v_size}, v_size);
  }
  const TensorView rows = reshaped(out, {n * heads, 2 * v_size});
  backend_.norm(rows, weights.norm, rows);
}

}  // namespace fp8kv
