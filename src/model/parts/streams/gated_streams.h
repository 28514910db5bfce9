// Hyper-connections with a rank (Qwen 4 Exp): blocks read the mean over normed streams, in which
// each element counts as much as the sigmoid of its gate. Two products of the normed streams make
// the gates, with an activation and `rank` numbers between them. Source: Qwen4ExpTextGatedResidual
// in transformers 5.24.
#pragma once

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class GatedStreams {
 public:
  // REQUIRES config.hyper with a rank.
  GatedStreams(ForwardMemory& memory, const ModelConfig& config);

  // out [n, dim] = what a block reads of x [n, streams * dim].
  void read(const HyperWeights& weights, const ConstTensorView& x, const TensorView& out);

  // The weights by which a block's output is added to the streams of the last `read`, less
  // kMoreWritten: 2 * sigmoid(z) is 1 + tanh(z / 2).   out [n, streams] f32
  void share(const HyperWeights& weights, const TensorView& out);
  static constexpr float kMoreWritten = 1.0f;

 private:
  Backend& backend_;
  int64_t count_;
  int64_t dim_;
  Tensor normed_, gates_;  // [max_rows, streams * dim]
  Tensor down_;            // [max_rows, rank]
  Tensor even_;            // [max_rows, streams] f32: 1 / streams
};

}  // namespace fp8kv
