// A scale tensor of a checkpoint as it is stored, and its bytes as numbers. Does not judge whether
// the numbers make sense as scales.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/numbers/dtype.h"
#include "core/numbers/tensor.h"
#include "scales/dialects.h"

namespace fp8kv {

struct ScaleTensor {
  std::string name;
  int64_t layer = 0;
  ScaleOf of = ScaleOf::k;
  DType dtype = DType::f32;
  Shape shape;                       // [], [1], or one number per KV head as [n] or [n, 1, 1]
  std::vector<float> values;         // one, or one per KV head; empty if they were not read
  const Dialect* dialect = nullptr;  // nullptr if it is still open, and in a file of our own
  std::string dialect_name;          // the name of the dialect, or of all possible ones
};

// A tensor beside the scales that is left alone.
struct IgnoredTensor {
  std::string name;
  std::string reason;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<float> values;  // empty if they are not plain numbers, or too many
};

// Whether a tensor can be read as scales, whatever they scale.
bool is_readable_scale(DType dtype, const Shape& shape);

// Throws if scales cannot have this dtype or shape. The message starts with the tensor's name.
void check_scale_form(const ScaleTensor& tensor, int64_t n_kv_heads);

// Decodes little-endian bytes as numbers. REQUIRES f32, f64, f16 or bf16.
std::vector<float> scale_numbers(std::string_view bytes, DType dtype);

// Rounds to the nearest number of that dtype. REQUIRES f32, f64, f16 or bf16.
float rounded_to(float value, DType dtype);

}  // namespace fp8kv
