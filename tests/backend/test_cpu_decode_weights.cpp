#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/cpu.h"
#include "support/backends/wide_quantised_case.h"

namespace fp8kv {

TEST_CASE("cpu decode_weights: has the bits of weight_value, whatever the form and the threads") {
  for (test::QuantisedCase& quantised : test::all_quantised_cases()) {
    CAPTURE(quantised.name);
    const QuantisedMatrix& matrix = quantised.on_host();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const std::vector<std::byte> expected = test::decoded_on_host(matrix, dtype);
      for (const CpuIsa isa : test::available_isas()) {
        CAPTURE(cpu_isa_name(isa));
        for (const int threads : {1, 3}) {
          const auto backend = make_cpu_backend(threads, isa);
          const Tensor to = backend->allocate(dtype, Shape{matrix.rows, matrix.columns});
          backend->decode_weights(matrix, to.view());
          CHECK(std::memcmp(to.view().data, expected.data(), expected.size()) == 0);
        }
      }
    }
  }
}

TEST_CASE("cpu decode_weights: rows that lie between those of another matrix") {
  size_t sorted = 0;
  for (test::QuantisedCase& quantised : test::all_quantised_cases()) {
    CAPTURE(quantised.name);
    const QuantisedMatrix& matrix = quantised.on_host();
    if (!may_be_sorted(matrix) || matrix.rows % 2 != 0) continue;
    ++sorted;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::vector<std::byte> whole = test::decoded_on_host(matrix, dtype);
      const size_t row_bytes = whole.size() / static_cast<size_t>(matrix.rows);
      const auto backend = make_cpu_backend(2);
      for (const int64_t first : {0, 1}) {
        const QuantisedMatrix part = every_row(matrix, first, 2);
        REQUIRE(part.rows == matrix.rows / 2);
        const Tensor to = backend->allocate(dtype, Shape{part.rows, matrix.columns});
        backend->decode_weights(part, to.view());
        for (int64_t row = 0; row < part.rows; ++row) {
          CHECK(std::memcmp(to.view().data + static_cast<size_t>(row) * row_bytes,
                            whole.data() + static_cast<size_t>(2 * row + first) * row_bytes,
                            row_bytes) == 0);
        }
      }
    }
  }
  CHECK(sorted >= 5);
}

}  // namespace fp8kv
