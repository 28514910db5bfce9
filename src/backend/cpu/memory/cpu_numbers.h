// Numbers of small tensors of any compute type, as F32: biases, scales, sinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "core/numbers/half.h"

namespace fp8kv {

// Element i of a tensor of F32, F16 or BF16.
inline float number_at(const ConstTensorView& view, int64_t i) {
  if (view.dtype == DType::f16) return f16_to_float(view.as<uint16_t>()[i]);
  if (view.dtype == DType::bf16) return bf16_to_float(view.as<uint16_t>()[i]);
  return view.as<float>()[i];
}

// All elements, in order.
inline std::vector<float> numbers_of(const ConstTensorView& view) {
  std::vector<float> all(static_cast<size_t>(view.shape.elements()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = number_at(view, static_cast<int64_t>(i));
  return all;
}

}  // namespace fp8kv
