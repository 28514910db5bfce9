// What layers without a cache keep of sequences: a convolution's last tokens, and a recurrent
// state. Slots are given out by whoever has the sequences.
#pragma once

#include <cstdint>
#include <map>

#include "backend/backend.h"
#include "core/config.h"

namespace fp8kv {

// Of one layer; without memory where nothing is kept. See CausalConv::state and Recurrence::state.
struct LayerState {
  TensorView conv_q, conv_k, conv_v;
  TensorView recurrent;
};

class LayerStates {
 public:
  // For sequences in `slots` slots. A model whose layers all have attention takes no memory.
  LayerStates(Backend& backend, const ModelConfig& config, int64_t slots);

  LayerState layer(int64_t index) const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct Memory {
    Tensor conv_q, conv_k, conv_v, recurrent;
  };

  std::map<int64_t, Memory> layers_;  // by layer
  uint64_t bytes_ = 0;
};

}  // namespace fp8kv
