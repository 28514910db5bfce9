// The part of a layer that keeps a state: its scratch memory, and its ops in their order.
#pragma once

#include <cstdint>

#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/parts/layer_states.h"
#include "model/parts/rope_tables.h"
#include "model/weights/weights.h"

namespace fp8kv {

class StateForward {
 public:
  // REQUIRES config.recurrence; `config` and `ropes` outlive this.
  StateForward(ForwardMemory& memory, const ModelConfig& config, const RopeTables& ropes);

  // Runs rows x [n, dim], which are normalised already, up to the last product. The result is
  // scratch, valid until the next call.   [n, v_width]
  TensorView run(const StateWeights& weights, const ConstTensorView& x, const Batch& batch,
                 const LayerState& state);

 private:
  // Does the work of `run` for a convolution without a state.
  TensorView convolve(const StateWeights& weights, const ConstTensorView& x, const Batch& batch,
                      const LayerState& state);
  // Does the work of `run` for a state whose Q, K and steps come from V.
  TensorView scan(const StateWeights& weights, const ConstTensorView& x, const Batch& batch,
                  const LayerState& state);
  void project(const StateWeights& weights, const ConstTensorView& x);
  // Norms the first n rows of Q and K, each head by itself.
  void norm_heads(const StateWeights& weights, int64_t n);
  void rotate(int64_t n, const Batch& batch);
  // Lets the first n rows of Q, K and V see the tokens before them, and applies SiLU.
  void mix_tokens(const StateWeights& weights, int64_t n, const Batch& batch,
                  const LayerState& state);
  void multiply(const TensorView& x, double multiplier);

  Backend& backend_;
  const RecurrenceConfig& sizes_;
  const RopeTables& ropes_;
  Tensor q_, k_, v_, gate_, read_;  // [max_rows, k_width] or [max_rows, v_width]
  Tensor gate_down_, step_down_;    // [max_rows, rank]
  Tensor step_;                     // [max_rows, steps] f32
  Tensor strength_;                 // [max_rows, v_heads] f32
};

}  // namespace fp8kv
