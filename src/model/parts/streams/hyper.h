// Hyper-connections: how the blocks of a layer read several residual streams and write to them. The
// blocks themselves are the usual ones.
// See HyperConfig for their two forms.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/parts/streams/gated_streams.h"
#include "model/parts/wide_rows.h"
#include "model/weights/weights.h"

namespace fp8kv {

// Makes streams from embeddings [n, dim], each of which begins as one of them.   out [n, streams *
// dim]
void repeat_streams(Backend& backend, const ConstTensorView& embedded, const TensorView& out);

// Rows x are [n, streams * dim].
class HyperForward {
 public:
  // REQUIRES config.hyper; `config` outlives this.
  HyperForward(ForwardMemory& memory, const ModelConfig& config);

  // The input of a block: scratch [n, dim], valid until the next call.
  TensorView read(const HyperWeights& weights, const ConstTensorView& x);

  // Mixes the streams that `read` was last called with, if they mix, and adds a block's output
  // [n, dim] to them.
  void write(const ConstTensorView& made, const TensorView& x);

  // Merges the streams of those rows of x that `rows` [n] i32 names.   out [n, dim]
  // `weights` are absent with HyperConfig::mean_head.
  void merge(const std::optional<HyperWeights>& weights, const ConstTensorView& x,
             const ConstTensorView& rows, const TensorView& out);

 private:
  void share(const HyperWeights& weights, const ConstTensorView& x, const HyperShares& out);

  Backend& backend_;
  const HyperConfig& hyper_;
  int64_t dim_;
  float norm_eps_;
  std::optional<GatedStreams> gated_;  // with a rank
  Tensor in_;                          // [max_rows, dim]
  Tensor chosen_;                      // [max_rows, streams * dim]
  Tensor products_;                    // [max_rows, width] f32; this and the next without a rank
  Tensor read_;                        // [max_rows, streams] f32
  Tensor means_;                       // likewise, what the mean takes; empty without mean_head
  Tensor write_;                       // [max_rows, streams] f32
  Tensor mix_;                         // [max_rows, streams * streams] f32; empty if no streams mix
  std::optional<WideRows> wide_;       // [streams * dim]; with f32_product
};

}  // namespace fp8kv
