// Pooled keys of an indexer, and gates of streams, on the CPU.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/pooled_scene.h"

namespace fp8kv {

TEST_CASE("append_pooled: the last token of a block stores the block's key") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t block : {2, 4, 5, 16}) {
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(block);
        const test::PooledScene scene{.block = block, .dtype = dtype};
        const std::vector<double> exact = scene.exact();
        std::vector<double> allowed;
        for (size_t i = 0; i < exact.size(); ++i) {
          allowed.push_back(test::rounding_of(exact[i], dtype) + scene.roundings(exact, i));
        }
        const std::vector<float> found = run_pooled(*backend, scene, {scene.tokens});
        test::expect_close(found, exact, allowed);
        // How rows are cut into steps changes no bit.
        CHECK(run_pooled(*backend, scene, {1, 1, 3, scene.tokens - 5}) == found);
        CHECK(run_pooled(*backend, scene, std::vector<int64_t>(14, 1)) == found);
      }
    }
  }
}

TEST_CASE("stream_gates: the sigmoid of a product's root, whose sign is the product's") {
  const auto backend = make_cpu_backend(2);
  // Products 8, -8, 0 and one below the least, each divided by the root of 4.
  const std::vector<float> keys = {2, 2, 0, 0, -2, -2, 0, 0, 1, -1, 0, 0, 1e-7f, 0, 0, 0};
  const std::vector<float> queries = {2, 2, 5, 5, 2, 2, 5, 5, 1, 1, 5, 5, 1, 0, 0, 0};
  const Tensor gates = backend->allocate(DType::f32, Shape{2, 2});
  backend->stream_gates(test::tensor_of(*backend, keys, {2, 2, 4}).view(),
                        test::tensor_of(*backend, queries, {2, 2, 4}).view(), gates.view());
  const std::vector<float> found = test::floats_of(*backend, gates.view());
  CHECK(found[0] == doctest::Approx(1 / (1 + std::exp(-2.0))));
  CHECK(found[1] == doctest::Approx(1 / (1 + std::exp(2.0))));
  CHECK(found[2] == 0.5f);
  CHECK(found[3] == doctest::Approx(1 / (1 + std::exp(-1e-3))));
}

}  // namespace fp8kv
