#pragma once

#include <optional>

#include "backend/op_arguments.h"
#include "core/cache/paged.h"
#include "core/numbers/tensor.h"
#include "model/weights/layer_weights.h"

namespace fp8kv {

// Q, K and V of a step's rows, rotated and rounded as the cache takes them. Scratch of the Forward
// that made them, valid until its next projection.
struct AttentionInputs {
  TensorView q;     // [n, n_heads, k_head_dim]
  TensorView k, v;  // see RopeAppend: [n, n_kv_heads, ..]; without heads if the layer
                    // reads another layer's cache
  std::optional<ConstTensorView> sinks = {};   // the layer's sinks: see AttentionOptions
  std::optional<ConstTensorView> chosen = {};  // the tokens that rows see: see AttentionOptions
  std::optional<DistanceBias> distances = {};  // see AttentionOptions
  TensorView index_pool = {};                  // the layer's LayerState::index_pool
  ConstTensorView x = {};  // [n, dim]: the rows that attention reads, before their norm
  std::optional<DifferentialWeights> differential = {};  // the layer's
};

// The memory of a sparse indexer. Empty unless IndexerForward::is_needed.
struct TokenChoice {
  PagedKv keys;       // the indexer's own; REQUIRED only in layers that choose
  TensorView chosen;  // see AttentionOptions: written by layers that choose, read by all of DSA
};

}  // namespace fp8kv
