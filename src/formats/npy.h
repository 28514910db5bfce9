// Reads numpy's .npy format: one array.
#pragma once

#include <string>
#include <string_view>

#include "core/numbers/dtype.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

struct NpyArray {
  DType dtype = DType::f32;
  Shape shape;
  std::string bytes;  // row-major, little-endian
};

// Parses a whole .npy file of version 1 to 3 with little-endian numbers. Throws, and starts
// messages with `source`.
NpyArray parse_npy(std::string_view file, const std::string& source);

}  // namespace fp8kv
