// A scale tensor of a checkpoint, as it is stored, and its bytes as numbers. Whether the numbers
// make sense as scales is decided elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"
#include "scales/dialects.h"

namespace fp8kv {

struct ScaleTensor {
  std::string name;
  int64_t layer = 0;
  ScaleOf of = ScaleOf::k;
  DType dtype = DType::f32;
  Shape shape;                       // [], [1], or one number per KV head as [n] or [n, 1, 1]
  std::vector<float> values;         // one, or one per KV head; none where they were not read
  const Dialect* dialect = nullptr;  // nullptr where that is open, and in a file of our own
  std::string dialect_name;          // its name, or the names of those it could be
};

// A tensor beside the scales that is left alone.
struct IgnoredTensor {
  std::string name;
  std::string reason;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<float> values;  // none where they are no plain numbers, or too many
};

// Whether a tensor can be read as scales at all, whatever they are for.
bool is_readable_scale(DType dtype, const Shape& shape);

// Throws, starting with the tensor's name, for a dtype or a shape that scales do not have.
void check_scale_form(const ScaleTensor& tensor, int64_t n_kv_heads);

// Numbers from little-endian bytes. REQUIRES f32, f64, f16 or bf16.
std::vector<float> scale_numbers(std::string_view bytes, DType dtype);

// The nearest number of that dtype; REQUIRES f32, f64, f16 or bf16.
float rounded_to(float value, DType dtype);

}  // namespace fp8kv
