// Rows of 16-bit activations as F32, for products with F32 weights.
#pragma once

#include <cstdint>

#include "model/parts/forward_memory.h"

namespace fp8kv {

class WideRows {
 public:
  // For rows of `width` elements. Takes no memory if activations are F32.
  WideRows(ForwardMemory& memory, int64_t width);

  // The rows x [n, width] in F32: scratch, valid until the next call; x itself if it is F32.
  ConstTensorView widened(const ConstTensorView& x);

 private:
  Backend& backend_;
  Tensor wide_;  // [max_rows, width] f32
  Tensor rows_;  // [max_rows] i32: 0, 1, 2, ...
};

}  // namespace fp8kv
