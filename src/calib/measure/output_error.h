// The error that a change of attention's output makes in the residual stream, for each KV head.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/model.h"

namespace fp8kv {

// The error of a row is |W d|^2 / |x|^2. d is the change for the query heads that read a KV head, W
// their columns of the output matrix, and x the row that attention reads, before its norm. If the
// layer gates attention's output, d is gated too. If it norms the block's output, W includes the
// norm's weights and its factor for the row.
class OutputError {
 public:
  // For up to `most_rows` rows. `backend` and `config` outlive this. REQUIRES attention without
  // latents.
  OutputError(Backend& backend, const ModelConfig& config, int64_t most_rows);

  // REQUIRES a layer with a cache, whose `weights` live until the next call.
  void begin_layer(int64_t index, const LayerWeights& weights);
  // x [n, dim]: see AttentionInputs, it stays unchanged until the next call; attended
  // [n, n_heads, v_head_dim]: attention's output without a change.
  void begin_rows(Forward& forward, const TensorView& x, const TensorView& attended);
  // Returns errors for a change of these rows.   change [n, n_heads, v_head_dim]; [n, n_kv_heads]
  const std::vector<double>& of(Forward& forward, const TensorView& change);

 private:
  ConstTensorView gated(Forward& forward, const TensorView& attended) const;

  Backend& backend_;
  const ModelConfig& config_;
  const LayerWeights* weights_ = nullptr;
  int64_t n_kv_heads_ = 0;
  TensorView x_;
  std::vector<float> columns_;  // [dim]: weights of the block's norm, or empty
  std::vector<double> rows_;    // [n]: 1 / |x|^2, times the square of the norm's factor
  std::vector<float> floats_;
  std::vector<double> errors_;
  Tensor decoded_;  // [dim, n_heads * v_head_dim], for quantised weights
  Tensor matrix_;   // [n_kv_heads, dim, n_heads / n_kv_heads * v_head_dim]
  Tensor changes_;  // [most_rows, n_kv_heads * dim]
  Tensor output_;   // [most_rows, dim], if the block's output is normed
};

}  // namespace fp8kv
