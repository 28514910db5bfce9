#include "scales/scale_tensors.h"

#include <cstring>

#include "base/error.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

float element(const char* bytes, DType dtype) {
  const auto load = [&]<typename T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f32:
      return load(float{});
    case DType::f64:
      return static_cast<float>(load(double{}));
    case DType::f16:
      return f16_to_float(load(uint16_t{}));
    default:
      return bf16_to_float(load(uint16_t{}));
  }
}

}  // namespace

bool is_readable_scale(DType dtype, const Shape& shape) {
  constexpr int64_t kMostHeads = 65536;
  return (is_compute_dtype(dtype) || dtype == DType::f64) && shape.elements() <= kMostHeads;
}

void check_scale_form(const ScaleTensor& tensor, int64_t n_kv_heads) {
  const std::string where = quote(tensor.name);
  if (!is_readable_scale(tensor.dtype, {})) {
    fail(where, ": is ", dtype_name(tensor.dtype), ", expected F32, F16, BF16 or F64");
  }
  const Shape& shape = tensor.shape;
  bool per_head = shape.rank() > 0 && n_kv_heads > 0 && shape[0] == n_kv_heads;
  bool single = true;
  for (size_t i = 0; i < shape.rank(); ++i) {
    single = single && shape[i] == 1;
    per_head = per_head && (i == 0 || shape[i] == 1);
  }
  if ((single || per_head) && is_readable_scale(tensor.dtype, shape)) return;
  fail(where, ": has the shape ", shape.text(), ", expected [], [1] or one number for each of ",
       count_of(static_cast<uint64_t>(n_kv_heads), "KV head"));
}

std::vector<float> scale_numbers(std::string_view bytes, DType dtype) {
  const size_t size = dtype_bytes(dtype);
  FP8KV_ASSERT(bytes.size() % size == 0);
  std::vector<float> numbers;
  for (size_t at = 0; at < bytes.size(); at += size) {
    numbers.push_back(element(bytes.data() + at, dtype));
  }
  return numbers;
}

float rounded_to(float value, DType dtype) {
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(value));
  if (dtype == DType::f16) return f16_to_float(f16_from_float(value));
  return value;
}

}  // namespace fp8kv
