// Kinds of products of a matrix unit, and memory for its packed numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "core/numbers/dtype.h"
#include "core/numbers/half.h"

namespace fp8kv::test {

// Memory for a matrix unit, with the alignment that its callers use.
template <typename T>
struct UnitRoom {
  explicit UnitRoom(int64_t count) : size(static_cast<size_t>(count)) {
    memory.resize(size + 64 / sizeof(T));
  }
  T* data() {
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - at % 64) % 64 / sizeof(T);
  }
  std::vector<T> values() { return {data(), data() + size}; }
  size_t size;
  std::vector<T> memory;
};

// A kind of product: weights of one type, on a unit that multiplies another.
struct ProductKind {
  DType weights;
  DType by;

  int weight_parts() const { return parts_of(weights, by); }
  int row_parts() const { return weights == DType::bf16 ? 1 : 2; }
  bool is_f16() const { return weights == DType::f16; }
  float value(uint16_t code) const { return is_f16() ? f16_to_float(code) : bf16_to_float(code); }
};

// The part of a unit that multiplies numbers of `type`.
inline const UnitNumbers& numbers_of(const MatrixUnit& unit, DType type) {
  return type == DType::f16 ? *unit.f16 : unit.bf16;
}

}  // namespace fp8kv::test
