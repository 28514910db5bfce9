// The gate that attention's output is multiplied by: its scratch memory, and its ops in their
// order.
#pragma once

#include "core/model/config.h"
#include "model/parts/forward_memory.h"

namespace fp8kv {

class AttentionGateForward {
 public:
  // REQUIRES a gate in config.block.
  AttentionGateForward(ForwardMemory& memory, const ModelConfig& config);

  // Returns `attended` times its gate. The result is scratch, valid until the next call.
  //   product: the gate's matrix; x [n, dim]: attention's input, normalised;
  //   attended and the result [n, heads * v_head_dim]
  TensorView run(const Linear& product, const ConstTensorView& x, const ConstTensorView& attended);

 private:
  Backend& backend_;
  AttentionGate kind_;
  Tensor gate_;   // [max_rows, n_heads * v_head_dim], for the largest layer
  Tensor heads_;  // [max_rows, n_heads], for a gate of heads
};

}  // namespace fp8kv
