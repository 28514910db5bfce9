// Attention whose one row of a token is K and V: its scratch memory and its own ops, in order. See
// SharedRowConfig.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/model/config.h"
#include "model/parts/attention_inputs.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class SharedRowForward {
 public:
  // REQUIRES config.shared_row; `config` outlives this.
  SharedRowForward(ForwardMemory& memory, const ModelConfig& config, int64_t max_positions);

  // Computes Q, K and V of layer `index` from rows x [n, dim], which are normalised already. They
  // are rotated, and stay to be rounded and appended.
  //   args: their memory, and the layer's rotation; pool_state: see TokenPools::state
  void project(int64_t index, const LayerWeights& weights, const ConstTensorView& x,
               const RopeAppend& args, const TensorView& pool_state);

  // The normalised vector that Q of the last rows was made from. Scratch like `output`.
  //   [n, q_rank]
  TensorView q_vector(int64_t n) const { return q_down_.first(n); }

  // The rotation of rows that pool blocks of layer `index`, as RopeAppend::rope.
  ConstTensorView pool_rope(int64_t index) const;

  // Turns attention's output of layer `index` back.   attended [n, n_heads, head_dim]
  void turn_back(int64_t index, const TensorView& attended, const RopeAppend& args);

  // The rows that the last product reads. Scratch, valid until the next call.
  //   attended [n, n_heads, head_dim]; [n, o_groups * o_rank]
  TensorView output(const SharedRowWeights& weights, const ConstTensorView& attended);

 private:
  void pool(const PoolWeights& weights, const ConstTensorView& x, const RopeAppend& turn,
            const TokenPools& pools);
  void rotated_first(const ConstTensorView& from, const TensorView& to);

  Backend& backend_;
  const ModelConfig& config_;
  const SharedRowConfig& row_;
  const int64_t head_dim_;
  std::vector<Tensor> back_;  // [max_positions, rope_dim] f32: of each of config.ropes
  std::map<std::pair<int32_t, int64_t>, Tensor> pool_ropes_;  // likewise, by rope and block
  Tensor q_down_;                                             // [max_rows, q_rank]
  Tensor q_;                       // [max_rows, n_heads * head_dim]: as products give it
  Tensor k_;                       // [max_rows, head_dim]: likewise
  Tensor pool_rows_, pool_gates_;  // [max_rows, parts * head_dim]; empty if no layer pools
  Tensor down_;                    // [max_rows, o_groups * o_rank]
};

}  // namespace fp8kv
