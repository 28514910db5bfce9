// Differential attention: its scratch memory, and its ops in their order. The kernels of attention
// know nothing of it.
#pragma once

#include "core/model/config.h"
#include "model/parts/attention_inputs.h"
#include "model/parts/forward_memory.h"

namespace fp8kv {

// Head h of the first half of the heads and head h of the second half make one output together.
// Both see the V heads of their own half and those of the other half, one beside the other. The
// output is norm(first - lambda * second), of twice V's size.
class DifferentialForward {
 public:
  // REQUIRES config.block.differential.
  DifferentialForward(ForwardMemory& memory, const ModelConfig& config);

  // Attends to what `kv` holds.   out [n, n_heads, v_head_dim]: the outputs in their order, each
  // in place of two heads. REQUIRES inputs.differential and batch.half_pages.
  void attend(const AttentionInputs& inputs, const PagedKv& kv, const Batch& batch,
              const AttentionOptions& options, const TensorView& out);

 private:
  Backend& backend_;
  Tensor q_[2], attended_[2];  // [max_rows, n_heads / 2 * head size]: of each half of the heads
};

}  // namespace fp8kv
