// Several residual streams (AltUp): each layer computes on one of them. Here is what happens to the
// streams around the layer, and at both ends of the model; the layer itself is the usual one.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

// Makes streams from embeddings [n, dim]: the embeddings, and products of them scaled to the same
// RMS.
// out [n, streams * dim]; scratch [n, dim]; weights [streams - 1] of [dim, dim]
void spread_streams(Backend& backend, const ConstTensorView& embedded,
                    std::span<const Tensor> weights, const TensorView& scratch,
                    const TensorView& out);

// Rows x are [n, streams * dim]. Results are scratch, valid until the next call that returns one.
class StreamsForward {
 public:
  // REQUIRES config.streams; `config` outlives this.
  StreamsForward(ForwardMemory& memory, const ModelConfig& config);

  // Replaces x by the layer's prediction of all streams.
  void predict(const StreamWeights& weights, const TensorView& x);
  TensorView active(const ConstTensorView& x);  // [n, dim]

  // Corrects the streams by `made` [n, dim], the layer's output on the active stream. `made` is
  // unspecified afterwards.
  void correct(const StreamWeights& weights, const TensorView& made, const TensorView& x);
  // The active stream that meets a layer's own input.   [n, dim]
  TensorView for_input(const StreamWeights& weights, const ConstTensorView& x);
  void add_to_others(const ConstTensorView& y, const TensorView& x);  // all streams but the first

  // Merges the streams of those rows of x that `rows` [n] i32 names: the mean of the first stream
  // and of products of the others, scaled to the first's RMS.   out [n, dim]
  void merge(std::span<const Linear> weights, const ConstTensorView& x, const ConstTensorView& rows,
             const TensorView& out);

 private:
  TensorView route(const StreamWeights& weights, const ConstTensorView& active);

  Backend& backend_;
  const StreamsConfig& streams_;
  int64_t dim_;
  Tensor active_, other_, product_;  // [max_rows, dim]
  Tensor chosen_;                    // [max_rows, streams * dim]
  Tensor routed_;                    // [max_rows, streams]
  Tensor shares_;                    // [max_rows, streams * streams] f32
  Tensor but_first_;                 // [max_rows, streams] f32: 0, 1, 1, ...
};

}  // namespace fp8kv
