// Attention residuals: each block of a layer reads a weighted sum of the residual stream and of
// what the stream was before earlier blocks of layers. A softmax of products makes the weights.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

// Rows x are [n, sources * dim]: the stream, then what is kept, the earliest first.
class AttnResForward {
 public:
  // REQUIRES config.attn_res_block > 0.
  AttnResForward(ForwardMemory& memory, const ModelConfig& config);

  // The input of a block: the sum of the first weights.sources sources. The result is scratch,
  // valid until the next call.   [n, dim]
  TensorView read(const AttnResWeights& weights, const ConstTensorView& x);

  // Adds a block's output [n, dim] to the stream.
  void write(const ConstTensorView& made, const TensorView& x);

  // Keeps the stream behind the first `sources` sources, and begins it anew with a block's output
  // [n, dim].
  void begin(int64_t sources, const ConstTensorView& made, const TensorView& x);

  // The sum at the end of the model, for those rows of x that `rows` [n] i32 names.   out [n, dim]
  void merge(const AttnResWeights& weights, const ConstTensorView& x, const ConstTensorView& rows,
             const TensorView& out);

 private:
  void sum(const AttnResWeights& weights, const ConstTensorView& x, const TensorView& out);

  Backend& backend_;
  int64_t dim_;
  Tensor in_, stream_;        // [max_rows, dim]
  Tensor sources_, normed_;   // [max_rows, sources * dim]
  Tensor chosen_;             // likewise
  Tensor products_, shares_;  // [max_rows, sources] f32
  Tensor numbers_;            // [max_rows, sources] i32: of the sources, which `route` gives
};

}  // namespace fp8kv
