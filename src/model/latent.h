// Latent attention (MLA), but for what all attention has: its scratch memory, and its ops in their
// order. Queries are taken into the space of the latent, which is what the cache holds, so that
// nothing of the cache is ever expanded.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/config.h"
#include "model/weights/weights.h"

namespace fp8kv {

class LatentForward {
 public:
  // For steps of up to `max_rows` rows. REQUIRES config.latent; `config` outlives this.
  LatentForward(Backend& backend, const ModelConfig& config, int64_t max_rows);

  // Of rows x [n, dim], which are normalised already, what is to be rotated and appended.
  //   q [n, n_heads, rope_dim + rank], k [n, 1, rope_dim], v [n, 1, rank]
  void project(const LayerWeights& weights, const ConstTensorView& x, const TensorView& q,
               const TensorView& k, const TensorView& v);

  // What heads make of the latents that they attended to, [n, n_heads, rank]: [n, n_heads * v_dim],
  // scratch that is valid until the next call.
  TensorView values(const LatentWeights& weights, const ConstTensorView& attended);

  uint64_t bytes() const;  // of scratch memory

 private:
  Backend& backend_;
  const LatentConfig& latent_;
  const int64_t n_heads_;
  Tensor q_down_;  // [max_rows, q_rank]; nothing where Q is made of the input
  Tensor q_;       // [max_rows, n_heads, nope_dim + rope_dim]
  Tensor values_;  // [max_rows, n_heads, v_dim]
};

}  // namespace fp8kv
