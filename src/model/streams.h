// Several residual streams of which a layer computes with one (AltUp): what is done to them around
// the layer, and at both ends of the model. What the layer itself does is the same as ever.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "core/config.h"
#include "model/weights/weights.h"

namespace fp8kv {

// The streams of embeddings [n, dim]: these, and products of them that are as large.
// out [n, streams * dim]; scratch [n, dim]; weights [streams - 1] of [dim, dim]
void spread_streams(Backend& backend, const ConstTensorView& embedded,
                    std::span<const Tensor> weights, const TensorView& scratch,
                    const TensorView& out);

// Rows x are [n, streams * dim]. What is returned is scratch, valid until the next call that
// returns something.
class StreamsForward {
 public:
  // For steps of up to `max_rows` rows. REQUIRES config.streams; `config` outlives this.
  StreamsForward(Backend& backend, const ModelConfig& config, int64_t max_rows);

  // x becomes what a layer expects all streams to be.
  void predict(const StreamWeights& weights, const TensorView& x);
  TensorView active(const ConstTensorView& x);  // [n, dim]

  // By what the layer made of the active stream, `made` [n, dim], which is unspecified afterwards.
  void correct(const StreamWeights& weights, const TensorView& made, const TensorView& x);
  // The active stream as it takes in a layer's own input.   [n, dim]
  TensorView for_input(const StreamWeights& weights, const ConstTensorView& x);
  void add_to_others(const ConstTensorView& y, const TensorView& x);  // than the first

  // One stream of all, of those rows of x that `rows` [n] i32 names: the mean of the first and of
  // products of the others that are as large.   out [n, dim]
  void merge(std::span<const Linear> weights, const ConstTensorView& x, const ConstTensorView& rows,
             const TensorView& out);

  uint64_t bytes() const;  // of scratch memory

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
