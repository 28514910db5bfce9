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

}  // namespace fp8kv
