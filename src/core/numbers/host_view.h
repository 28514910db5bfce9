// Views of host memory, like std::vector's, as tensors: for Backend::copy_in, and for tensors to
// write. The type of the values says the dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "base/error.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

template <typename T>
constexpr DType host_dtype() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return DType::i32;
  } else {
    static_assert(std::is_same_v<T, uint64_t>);
    return DType::u64;
  }
}

// REQUIRES as many values as the shape has elements.
template <std::ranges::contiguous_range Values>
ConstTensorView host_view(const Values& values, const Shape& shape) {
  FP8KV_ASSERT(static_cast<int64_t>(std::ranges::size(values)) == shape.elements());
  const std::span all(std::ranges::data(values), std::ranges::size(values));
  return {std::as_bytes(all).data(), host_dtype<std::ranges::range_value_t<Values>>(), shape};
}

// [the number of values]
template <std::ranges::contiguous_range Values>
ConstTensorView host_view(const Values& values) {
  return host_view(values, Shape{static_cast<int64_t>(std::ranges::size(values))});
}

}  // namespace fp8kv
