#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"

namespace fp8kv {

TEST_CASE("cpu arrange: every element comes from where the steps lead") {
  const auto backend = make_cpu_backend(3);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const int64_t rows = 133, columns = 70;
    const Tensor from = backend->allocate(dtype, Shape{rows * columns});
    const Tensor to = backend->allocate(dtype, Shape{rows, columns});
    for (int64_t i = 0; i < rows * columns; ++i) {
      if (dtype == DType::f32) {
        from.view().as<uint32_t>()[i] = static_cast<uint32_t>(i);
      } else {
        from.view().as<uint16_t>()[i] = static_cast<uint16_t>(i);
      }
    }
    backend->arrange(from.view(), {1, rows}, to.view());  // from is [columns, rows]
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = i * columns + j, expected = j * rows + i;
        const int64_t found =
            dtype == DType::f32 ? to.view().as<uint32_t>()[at] : to.view().as<uint16_t>()[at];
        REQUIRE(found == expected);
      }
    }
  }
}

}  // namespace fp8kv
