// The kernels of latent attention, against the CPU's ops.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/latent_scene.h"

namespace fp8kv {

TEST_CASE("gpu linear_heads and copy_columns: equal the CPU's within rounding") {
  const auto cpu = make_cpu_backend(2);
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (size_t turn = 0; turn < 6; ++turn) {
      const DType dtype = test::kComputeTypes[turn / 2];
      const test::HeadsCase exact{.rows = turn % 2 == 0 ? 1 : 70};
      test::HeadsCase c = exact;
      c.dtype = dtype;
      CAPTURE(std::string(dtype_name(dtype)));
      CAPTURE(c.rows);
      Rng rng(6);
      const auto x =
          test::rounded_to(test::random_floats(rng, c.rows * c.n_heads * c.x_width), dtype);
      const auto values =
          test::rounded_to(test::random_floats(rng, c.n_heads * c.out_dim * c.in_dim), dtype);
      const Shape shape{c.n_heads, c.out_dim, c.in_dim};
      const Tensor weights = test::put(*gpu, values, dtype, shape);
      const Tensor cpu_weights = test::tensor_of(*cpu, values, shape);
      const auto expected = test::run_heads(*cpu, exact, x, cpu_weights.view());
      // Sums of in_dim products below 1, in another order.
      const double in_order = 2.0 * static_cast<double>(c.in_dim * c.in_dim) * test::kUnitF32;
      const std::vector<double> sums(expected.begin(), expected.end());
      std::vector<double> allowed;
      for (const double sum : sums) {
        allowed.push_back(in_order + (dtype == DType::f32 ? 0 : test::rounding_of(sum, dtype)));
      }
      test::expect_close(test::run_heads(*gpu, c, x, weights.view()), sums, allowed);
    }
    for (const DType dtype : test::kComputeTypes) {
      const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8};
      const Tensor from = test::put(*gpu, numbers, dtype, {2, 2, 2});
      const Tensor to = test::put(*gpu, std::vector<float>(12), dtype, {2, 2, 3});
      gpu->copy_columns({from.view(), 1}, {to.view(), 2}, 1);
      CHECK(test::get(*gpu, to.view()) == std::vector<float>{0, 0, 2, 0, 0, 4, 0, 0, 6, 0, 0, 8});
    }
  }
}

TEST_CASE("gpu latent attention: the CPU's cache and counts, and its output within rounding") {
  const auto cpu = make_cpu_backend(2);
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const CacheType& cache : {CacheType(DType::f32), CacheType(DType::bf16),
                                   CacheType(DType::f8_e4m3), CacheType(KvFormat::ds_mla)}) {
      for (const int64_t rank : {cache.k == KvFormat::ds_mla ? 128 : 20, 512}) {
        CAPTURE(format_name(cache.k));
        CAPTURE(rank);
        const test::LatentScene scene{.tokens = 37, .rank = rank, .cache = cache};
        const test::LatentOutcome expected = run_latent(*cpu, scene),
                                  found = run_latent(*gpu, scene);
        CHECK(found.cache == expected.cache);
        CHECK(found.amax == expected.amax);
        CHECK(found.n_counted == expected.n_counted);
        // Scores are sums of head_dim products below 1, values below 1.
        const double allowed = 4.0 * static_cast<double>(scene.head_dim()) * test::kUnitF32;
        test::expect_close(found.attended,
                           std::vector<double>(expected.attended.begin(), expected.attended.end()),
                           std::vector<double>(expected.attended.size(), allowed));
      }
    }
  }
}

}  // namespace fp8kv
