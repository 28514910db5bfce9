// Gemma 3n's path around attention: its scratch memory, and its ops in their order.
#pragma once

#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class LaurelForward {
 public:
  // REQUIRES config.laurel_rank > 0.
  LaurelForward(ForwardMemory& memory, const ModelConfig& config);

  // Returns the path's output for rows x [n, dim], which are normalised already. The result is
  // scratch, valid until the next call.   [n, dim]
  TensorView run(const LaurelWeights& weights, const ConstTensorView& x);

 private:
  Backend& backend_;
  Tensor out_, low_;  // [max_rows, dim], [max_rows, laurel_rank]
};

}  // namespace fp8kv
