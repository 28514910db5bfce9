// Layers with n-grams add to all streams: a value made of the n-grams' rows, times a gate for each
// stream, and a convolution over the earlier ones.
// Source: Qwen4ExpTextPLELayer in transformers 5.24.
#pragma once

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/parts/layer_states.h"
#include "model/weights/weights.h"

namespace fp8kv {

class NgramForward {
 public:
  // REQUIRES config.ngrams; `config` outlives this.
  NgramForward(ForwardMemory& memory, const ModelConfig& config);

  // Adds to x [n, streams * dim].   rows [n, NgramConfig::dim]: of the tokens' n-grams
  void run(const NgramWeights& weights, const ConstTensorView& rows, const TensorView& x,
           const Batch& batch, const LayerState& state);

 private:
  Backend& backend_;
  const NgramConfig& ngrams_;
  int64_t dim_;
  Tensor keys_, queries_;  // [max_rows, streams * dim]
  Tensor value_;           // [max_rows, dim]
  Tensor gates_;           // [max_rows, streams] f32
};

}  // namespace fp8kv
