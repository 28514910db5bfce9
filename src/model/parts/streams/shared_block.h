// Blocks of attention and a feed-forward part that several layers share (Zamba 2): their scratch
// memory, and their ops in their order.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/layer_weights.h"

namespace fp8kv {

// Rows x are [n, 2 * dim]: the stream, then the token's embedding, which never changes. Attention
// reads both. The block's output goes into the layer's state alone, and not into the stream.
// Results are scratch, valid until the next call that returns one.
class SharedBlockForward {
 public:
  // REQUIRES config.shared_block; `config` outlives this.
  SharedBlockForward(ForwardMemory& memory, const ModelConfig& config);

  // Computes args.q, k and v of rows x [n, 2 * dim], which are normalised already.
  void project(const LayerWeights& weights, const ConstTensorView& x, const RopeAppend& args);

  // Returns the input of the layer's state: the stream, and the output of the block if the layer
  // has one.   attended [n, n_heads * v_head_dim]; the result [n, dim], before the state's norm
  TensorView state_input(const LayerWeights& weights, const ConstTensorView& x,
                         const std::optional<ConstTensorView>& attended);

  TensorView stream(const ConstTensorView& x);              // [n, dim]
  void put(const ConstTensorView& y, const TensorView& x);  // replaces the stream by y [n, dim]

  // Takes the stream of those rows of x that `rows` [n] i32 names.   out [n, dim]
  void merge(const ConstTensorView& x, const ConstTensorView& rows, const TensorView& out);

 private:
  void add_lora(const LoraWeights& lora, const ConstTensorView& x, const TensorView& out);
  void feed(const LayerWeights& weights, const ConstTensorView& attended, const TensorView& onto);

  Backend& backend_;
  Activation activation_;
  int64_t hidden_dim_;
  Tensor stream_, input_, made_;  // [max_rows, dim]
  Tensor gate_, up_;              // [max_rows, hidden_dim]
  Tensor low_;                    // [max_rows, rank]
  Tensor chosen_;                 // [max_rows, 2 * dim]
};

}  // namespace fp8kv
