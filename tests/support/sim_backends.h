// The GPU backends of this build that run without a GPU, and tensors of any type on them.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "core/half.h"

namespace fp8kv::sim32 {
std::unique_ptr<Backend> make_gpu_backend();
}
namespace fp8kv::sim64 {
std::unique_ptr<Backend> make_gpu_backend();
}

namespace fp8kv::test {

struct NamedBackend {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

inline std::vector<NamedBackend> gpu_backends() {
  return {{"sim32", sim32::make_gpu_backend}, {"sim64", sim64::make_gpu_backend}};
}

// Unit roundoff of a compute type.
inline double unit_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
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

// The values rounded to `dtype`, as they lie in memory.
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
  backend.copy_in(tensor.view(),
                  {reinterpret_cast<const std::byte*>(values.data()), DType::i32, shape});
  return tensor;
}

inline std::vector<float> get(Backend& backend, const TensorView& view) {
  std::vector<std::byte> bytes(view.bytes());
  backend.download(view, bytes);
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
