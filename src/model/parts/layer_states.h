// The states that layers without a cache keep of sequences: a convolution's last tokens, and a
// recurrent state. The owner of the sequences assigns the slots.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "backend/backend.h"
#include "core/model/config.h"

namespace fp8kv {

// One layer's state; without memory if the layer keeps none. See CausalConv::state and
// Recurrence::state.
struct LayerState {
  TensorView conv_q, conv_k, conv_v;
  TensorView recurrent;
  TensorView conv_ngrams;                              // of a layer with n-grams
  TensorView short_k, short_v, short_attn, short_ffn;  // of short convolutions
  TensorView pool, index_pool;                         // see TokenPools::state
};

class LayerStates {
 public:
  // For sequences in `slots` slots. A model with attention in every layer takes no memory.
  LayerStates(Backend& backend, const ModelConfig& config, int64_t slots);

  LayerState layer(int64_t index) const;
  uint64_t bytes() const { return bytes_; }

 private:
  using Take = std::function<Tensor(const Shape& shape)>;
  void take_short_convs(const ModelConfig& config, int64_t index, int64_t slots, const Take& take);
  void take_pools(const ModelConfig& config, int64_t index, int64_t slots, const Take& take);
  void take_index_pool(const ModelConfig& config, int64_t index, int64_t slots, const Take& take);
  void take_state(const ModelConfig& config, int64_t index, int64_t slots, const Take& take);

  struct Memory {
    Tensor conv_q, conv_k, conv_v, recurrent, conv_ngrams;
    Tensor short_k, short_v, short_attn, short_ffn;
    Tensor pool, index_pool;
  };

  std::map<int64_t, Memory> layers_;  // by layer
  uint64_t bytes_ = 0;
};

}  // namespace fp8kv
