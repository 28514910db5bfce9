#pragma once

#include <optional>

#include "core/numbers/tensor.h"

namespace fp8kv {

// Q, K and V of a step's rows, rotated and rounded as the cache takes them. Scratch of the Forward
// that made them, valid until its next projection.
struct AttentionInputs {
  TensorView q;     // [n, n_heads, k_head_dim]
  TensorView k, v;  // see RopeAppend: [n, n_kv_heads, ..]; without heads if the layer
                    // reads another layer's cache
  std::optional<ConstTensorView> sinks = {};  // the layer's sinks: see AttentionOptions
};

}  // namespace fp8kv
