// RoundingBackend, compared with the CPU backend whose results are rounded here.
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/rounding_backend.h"
#include "core/numbers/half.h"
#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

Tensor tensor_of(Backend& backend, const std::vector<float>& values, const Shape& shape) {
  Tensor made = backend.allocate(DType::f32, shape);
  backend.copy_in(made.view(), host_view(values, shape));
  return made;
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto* first = tensor.view().as<float>();
  return {first, first + tensor.view().shape.elements()};
}

float to_bf16(float x) {
  return bf16_to_float(bf16_from_float(x));
}
float to_f16(float x) {
  return f16_to_float(f16_from_float(x));
}

}  // namespace

TEST_CASE("rounding backend: results have the model's dtype, bf16 or f16") {
  const auto cpu = make_cpu_backend(1);
  RoundingBackend bf16(*cpu, DType::bf16), f16(*cpu, DType::f16);
  const std::vector<float> values = {1.0009765625f, -3.1415926f, 1e-3f, 70000.0f};
  const Tensor x = tensor_of(*cpu, values, Shape{1, 4}), y = tensor_of(*cpu, values, Shape{1, 4});
  bf16.scale(x.view(), 0.5f, 0.0f);
  f16.scale(y.view(), 0.5f, 0.0f);
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(values_of(x)[i] == to_bf16(values[i] * 0.5f));
    CHECK(values_of(y)[i] == to_f16(values[i] * 0.5f));
  }
}

TEST_CASE("rounding backend: a product is rounded, added to the stream, and the sum rounded") {
  const auto cpu = make_cpu_backend(1);
  RoundingBackend rounding(*cpu, DType::bf16);
  // 1 + 2^-8 lies halfway between two bf16 numbers and rounds to the even one, which is 1. Rounded
  // once, the sum of stream and product would be 257.0 + 2^-8, which bf16 rounds up to 258.
  const Tensor x = tensor_of(*cpu, {1.00390625f}, Shape{1, 1});
  const Tensor weight = tensor_of(*cpu, {1.0f}, Shape{1, 1});
  const Tensor stream = tensor_of(*cpu, {256.0f}, Shape{1, 1});
  const Projection onto{weight.view(), std::nullopt, stream.view(), true, std::nullopt};
  rounding.linear(x.view(), std::array{onto});
  CHECK(values_of(stream)[0] == 256.0f);
}

TEST_CASE("rounding backend: is needed where activations have more bits than the model") {
  const auto cpu = make_cpu_backend(1);
  CHECK(RoundingBackend::is_needed(*cpu, DType::bf16));
  CHECK(RoundingBackend::is_needed(*cpu, DType::f16));
  CHECK_FALSE(RoundingBackend::is_needed(*cpu, DType::f32));
}

}  // namespace fp8kv
