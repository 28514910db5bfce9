// A layer's dense feed-forward part up to its last product: its scratch memory and its ops.
#pragma once

#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class DenseForward {
 public:
  // For layers of up to `hidden_dim`. `config` outlives this.
  DenseForward(ForwardMemory& memory, const ModelConfig& config, int64_t hidden_dim);

  // Returns what the layer's `down` multiplies, for rows x [n, dim]. The result is scratch, valid
  // until the next call.   [n, hidden_dim]
  TensorView run(const LayerWeights& weights, const ConstTensorView& x, const InputNorm& in);

 private:
  ConstTensorView entered(const ConstTensorView& x, const InputNorm& in);
  void activate(const LayerWeights& weights, const TensorView& gate, const TensorView& up);

  Backend& backend_;
  const BlockConfig& block_;
  Tensor gate_, up_;  // [max_rows, hidden_dim]; no gate_ unless the block is gated
};

}  // namespace fp8kv
