// Latent attention (MLA): its scratch memory and its own ops, in order. Queries are projected into
// the space of the latent, which is what the cache holds. So no cache entry is ever expanded.
#pragma once

#include <cstdint>

#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class LatentForward {
 public:
  // REQUIRES config.latent; `config` outlives this.
  LatentForward(ForwardMemory& memory, const ModelConfig& config);

  // Computes the rows to rotate and append from rows x [n, dim], which are normalised already.
  //   q [n, n_heads, rope_dim + rank], k [n, 1, rope_dim], v [n, 1, rank]
  void project(const LayerWeights& weights, const ConstTensorView& x, const TensorView& q,
               const TensorView& k, const TensorView& v);

  // The normalised vector that Q of the last rows was made from. Scratch like `values`. REQUIRES
  // LatentConfig::q_rank.   [n, q_rank]
  TensorView q_vector(int64_t n) const { return q_down_.first(n); }

  // Turns attended latents [n, n_heads, rank] into the heads' outputs [n, n_heads * v_dim]. The
  // result is scratch, valid until the next call.
  TensorView values(const LatentWeights& weights, const ConstTensorView& attended);

 private:
  void multiply(const TensorView& x, double factor);

  Backend& backend_;
  const LatentConfig& latent_;
  const int64_t n_heads_;
  Tensor q_down_;  // [max_rows, q_rank]; empty if Q is made from the input
  Tensor q_;       // [max_rows, n_heads, nope_dim + rope_dim]
  Tensor values_;  // [max_rows, n_heads, v_dim]
};

}  // namespace fp8kv
