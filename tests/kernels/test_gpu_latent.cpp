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
    for (const int64_t rows : {1, 70}) {
      const test::HeadsCase c{.rows = rows};
      Rng rng(6);
      const auto x = test::random_floats(rng, c.rows * c.n_heads * c.x_width);
      const auto values = test::random_floats(rng, c.n_heads * c.out_dim * c.in_dim);
      const Shape shape{c.n_heads, c.out_dim, c.in_dim};
      const Tensor weights = test::tensor_of(*gpu, values, shape);
      const Tensor cpu_weights = test::tensor_of(*cpu, values, shape);
      const auto expected = test::run_heads(*cpu, c, x, cpu_weights.view());
      // Sums of in_dim products below 1, in another order.
      const double allowed = 2.0 * static_cast<double>(c.in_dim * c.in_dim) * test::kUnitF32;
      test::expect_close(test::run_heads(*gpu, c, x, weights.view()),
                         std::vector<double>(expected.begin(), expected.end()),
                         std::vector<double>(expected.size(), allowed));
    }
    const Tensor from =
        test::tensor_of(*gpu, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
    const Tensor to = test::tensor_of(*gpu, std::vector<float>(12), {2, 2, 3});
    gpu->copy_columns({from.view(), 1}, {to.view(), 2}, 1);
    CHECK(test::floats_of(*gpu, to.view()) ==
          std::vector<float>{0, 0, 2, 0, 0, 4, 0, 0, 6, 0, 0, 8});
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
