// Functions of the element types that weights and caches can have.
#pragma once

#include <optional>

#include "core/numbers/dtype.h"

namespace fp8kv {

// One function for every element type that weights and caches can have.
template <typename Function>
struct PerType {
  Function f32;
  Function f16;
  Function bf16;
  Function e4m3fn;
  Function e4m3fnuz;
  Function e5m2;
  Function e5m2fnuz;

  // REQUIRES a compute or fp8 type.
  Function operator[](DType dtype) const {
    if (const std::optional<Fp8Format> format = fp8_format(dtype)) {
      switch (*format) {
        case Fp8Format::e4m3fn:
          return e4m3fn;
        case Fp8Format::e4m3fnuz:
          return e4m3fnuz;
        case Fp8Format::e5m2:
          return e5m2;
        case Fp8Format::e5m2fnuz:
          return e5m2fnuz;
      }
    }
    if (dtype == DType::f16) return f16;
    return dtype == DType::bf16 ? bf16 : f32;
  }
};

}  // namespace fp8kv
