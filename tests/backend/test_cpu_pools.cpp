// Rows that pool blocks of tokens, and attention to them, on the CPU.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/pools_scene.h"

namespace fp8kv {

TEST_CASE("pool_tokens and attention: pooled rows, alone and over two blocks") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t block : {2, 4, 23, 30}) {
        for (const int64_t parts : {1, 2}) {
          CAPTURE(std::string(dtype_name(dtype)));
          CAPTURE(block);
          CAPTURE(parts);
          test::check_pools(*backend, {.block = block, .parts = parts, .dtype = dtype});
        }
      }
    }
  }
}

TEST_CASE("attention: pooled rows in every cache of elements") {
  const auto backend = make_cpu_backend(2);
  for (const DType cache : {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e4m3fnuz,
                            DType::f8_e5m2, DType::f8_e5m2fnuz}) {
    CAPTURE(std::string(dtype_name(cache)));
    test::check_pools(*backend, {.dtype = DType::bf16, .cache = cache});
  }
}

TEST_CASE("attention: a row sees the pooled rows that are chosen, and none that has not ended") {
  const auto backend = make_cpu_backend(2);
  test::PoolsScene scene{.n_heads = 5, .window = 3, .sinks = false};
  scene.chosen.emplace();
  for (int64_t row = 0; row < scene.tokens; ++row) {
    // Block 1, the row's own, and nothing.
    for (const int64_t block : {int64_t{1}, (row + 1) / scene.block, int64_t{-1}}) {
      scene.chosen->push_back(static_cast<int32_t>(block));
    }
  }
  test::check_pools(*backend, scene);
}

TEST_CASE("pool_tokens: a gate far above the others takes its token alone") {
  const auto backend = make_cpu_backend(1);
  const Tensor rows = test::tensor_of(*backend, std::vector<float>{1, 2, 3, 4}, {4, 1});
  const Tensor gates = test::tensor_of(*backend, std::vector<float>{0, 1e30f, 0, -1e30f}, {4, 1});
  const Tensor bias = test::tensor_of(*backend, std::vector<float>{0, 0}, {2, 1});
  const Tensor positions = test::tensor_of(*backend, std::vector<int32_t>{0, 1, 2, 3}, {4});
  const Tensor indptr = test::tensor_of(*backend, std::vector<int32_t>{0, 4}, {2});
  const Tensor out = backend->allocate(DType::f32, Shape{4, 1});
  Batch batch;
  batch.positions = positions.view();
  batch.indptr = indptr.view();
  backend->pool_tokens({rows.view(), gates.view(), bias.view(), 2, 1, {}}, batch, out.view());
  CHECK(test::floats_of(*backend, out.view()) == std::vector<float>{0, 2, 0, 3});
}

}  // namespace fp8kv
