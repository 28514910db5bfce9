// Experts whose outputs are normed one by one before they are added up.
#pragma once

#include <cstdint>

#include "model/parts/forward_memory.h"
#include "model/weights/weights.h"

namespace fp8kv {

class EachExpert {
 public:
  // For rows of `width` that go to `per_token` experts each.
  EachExpert(ForwardMemory& memory, int64_t per_token, int64_t width);

  // out = the weighted sum of the normed outputs of each row's experts.   x, out [n, width]
  // REQUIRES weights.each_norm.
  void run(const LayerExperts& weights, const ConstTensorView& x, const Routed& routed,
           const ExpertMatrices& matrices, const TensorView& out);

 private:
  Backend& backend_;
  int64_t per_token_, width_;
  Tensor rows_;       // [max_rows * per_token] i32: the row that each output is made from
  Tensor ones_;       // [max_rows * per_token, 1] f32: weights of experts that are weighed later
  Tensor in_, made_;  // [max_rows, per_token * width]
};

}  // namespace fp8kv
