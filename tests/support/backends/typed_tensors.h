// Tensors of any compute type on a backend, made of floats and read as floats.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backend/backend.h"
#include "core/numbers/half.h"
#include "core/numbers/host_view.h"

namespace fp8kv::test {

// Unit roundoff of a compute type.
inline double unit_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
}

// The largest error of rounding `value` to a compute type. f16 has subnormal numbers below 2^-14.
inline double rounding_of(double value, DType dtype) {
  return unit_of(dtype) * std::abs(value) + (dtype == DType::f16 ? 0x1p-25 : 0);
}

inline float rounded_to(float x, DType dtype) {
  if (dtype == DType::f16) return f16_to_float(f16_from_float(x));
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(x));
  return x;
}

inline std::vector<float> rounded_to(std::vector<float> values, DType dtype) {
  for (float& x : values) x = rounded_to(x, dtype);
  return values;
}

// The bytes of the values, rounded to `dtype`.
inline std::vector<std::byte> encoded_as(const std::vector<float>& values, DType dtype) {
  const size_t size = dtype_bytes(dtype);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half =
        dtype == DType::f16 ? f16_from_float(values[i]) : bf16_from_float(values[i]);
    if (size == 4) std::memcpy(&bytes[4 * i], &values[i], 4);
    if (size == 2) std::memcpy(&bytes[2 * i], &half, 2);
  }
  return bytes;
}

inline Tensor put(Backend& backend, const std::vector<float>& values, DType dtype,
                  const Shape& shape) {
  const std::vector<std::byte> bytes = encoded_as(values, dtype);
  Tensor tensor = backend.allocate(dtype, shape);
  backend.copy_in(tensor.view(), {bytes.data(), dtype, shape});
  return tensor;
}

inline Tensor put(Backend& backend, const std::vector<int32_t>& values, const Shape& shape) {
  Tensor tensor = backend.allocate(DType::i32, shape);
  backend.copy_in(tensor.view(), host_view(values, shape));
  return tensor;
}

inline std::vector<std::byte> bytes_of(Backend& backend, const TensorView& view) {
  std::vector<std::byte> bytes(view.bytes());
  backend.download(view, bytes);
  return bytes;
}

inline std::vector<float> get(Backend& backend, const TensorView& view) {
  const std::vector<std::byte> bytes = bytes_of(backend, view);
  std::vector<float> values(static_cast<size_t>(view.shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    if (view.dtype == DType::f32) {
      std::memcpy(&values[i], &bytes[4 * i], 4);
    } else {
      std::memcpy(&half, &bytes[2 * i], 2);
      values[i] = view.dtype == DType::f16 ? f16_to_float(half) : bf16_to_float(half);
    }
  }
  return values;
}

}  // namespace fp8kv::test
