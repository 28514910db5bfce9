// The kernels of sparse attention.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/choice_scene.h"
#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/latent_scene.h"
#include "support/backends/pooled_scene.h"
#include "support/backends/pools_scene.h"

namespace fp8kv {

TEST_CASE("gpu choose_tokens: the tokens with the highest scores, the earlier among equals") {
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t count : {1, 7, 300}) {
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(count);
        const test::ChoiceScene few{.count = count, .dtype = dtype};
        CHECK(test::run_choice(*gpu, few) == few.expected());
        const test::ChoiceScene many{.before = 290,
                                     .rows = 33,
                                     .n_heads = 9,
                                     .head_dim = 20,
                                     .count = count,
                                     .scored_rows = 40,
                                     .dtype = dtype};
        CHECK(test::run_choice(*gpu, many) == many.expected());
      }
    }
  }
}

TEST_CASE("gpu choose_tokens: each head chooses blocks by their highest score, and its last") {
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t block : {1, 3, 128}) {
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(block);
        test::ChoiceScene scene{.count = 2, .block = block, .local_blocks = 1, .by_head = true};
        scene.dtype = dtype;
        CHECK(test::run_choice(*gpu, scene) == scene.expected());
        scene.before = 90;
        scene.count = 5;
        scene.n_heads = 4;
        CHECK(test::run_choice(*gpu, scene) == scene.expected());
      }
    }
  }
}

TEST_CASE("gpu choose_tokens: by pooled keys all heads choose whole blocks, and the row's own") {
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t block : {2, 3, 128}) {
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(block);
        test::ChoiceScene scene{.count = 3, .block = block, .pooled = true, .dtype = dtype};
        CHECK(test::run_choice(*gpu, scene) == scene.expected());
        scene.before = 90;
        scene.n_heads = 9;
        CHECK(test::run_choice(*gpu, scene) == scene.expected());
      }
    }
  }
}

TEST_CASE("gpu pool_tokens and attention: pooled rows within their roundings") {
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t parts : {1, 2}) {
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(parts);
        test::check_pools(*gpu, {.parts = parts, .dtype = dtype});
        test::check_pools(*gpu, {.dim = 70, .block = 5, .parts = parts, .dtype = dtype});
      }
      for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                                DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz}) {
        CAPTURE(std::string(dtype_name(cache)));
        test::check_pools(*gpu, {.dtype = dtype, .cache = cache});
      }
    }
    test::PoolsScene scene{.sinks = false};
    scene.chosen.emplace();
    for (int64_t row = 0; row < scene.tokens; ++row) {
      for (const int64_t block : {int64_t{1}, (row + 1) / scene.block, int64_t{-1}}) {
        scene.chosen->push_back(static_cast<int32_t>(block));
      }
    }
    test::check_pools(*gpu, scene);
  }
}

TEST_CASE("gpu append_pooled: exact keys within their roundings, however rows are cut") {
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(std::string(dtype_name(dtype)));
      const test::PooledScene scene{.dtype = dtype};
      const std::vector<double> exact = scene.exact();
      std::vector<double> allowed;
      for (size_t i = 0; i < exact.size(); ++i) {
        allowed.push_back(test::rounding_of(exact[i], dtype) + scene.roundings(exact, i));
      }
      const std::vector<float> found = run_pooled(*gpu, scene, {scene.tokens});
      test::expect_close(found, exact, allowed);
      CHECK(run_pooled(*gpu, scene, {1, 1, 3, scene.tokens - 5}) == found);
    }
  }
}

TEST_CASE("gpu sparse attention: the CPU's output within rounding") {
  const auto cpu = make_cpu_backend(2);
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const CacheType& cache : {CacheType(DType::f32), CacheType(DType::bf16),
                                   CacheType(DType::f8_e4m3), CacheType(KvFormat::ds_mla)}) {
      CAPTURE(format_name(cache.k));
      test::LatentScene scene{.tokens = 75, .rank = 128, .cache = cache};
      const test::LatentOutcome dense = run_latent(*gpu, scene);
      // Later rows see the first 17 tokens, and the last 17.
      scene.chosen_count = 34;
      for (int32_t row = 0; row < scene.tokens; ++row) {
        for (int32_t i = 0; i < scene.chosen_count; ++i) {
          const int32_t at = row < scene.chosen_count || i < 17 ? i : row - 33 + i;
          scene.chosen.push_back(at <= row ? at : -1);
        }
      }
      const test::LatentOutcome expected = run_latent(*cpu, scene), found = run_latent(*gpu, scene);
      // Scores are sums of head_dim products below 1, values below 1.
      const double allowed = 4.0 * static_cast<double>(scene.head_dim()) * test::kUnitF32;
      test::expect_close(found.attended,
                         std::vector<double>(expected.attended.begin(), expected.attended.end()),
                         std::vector<double>(expected.attended.size(), allowed));
      // Rows that see no more than is chosen have the bits of attention to all.
      const auto same = 34 * scene.n_heads * scene.rank;
      CHECK(std::equal(found.attended.begin(), found.attended.begin() + same,
                       dense.attended.begin()));
    }
  }
}

TEST_CASE("gpu latent attention: every compute type and cache, with chosen tokens and without") {
  const auto cpu = make_cpu_backend(2);
  std::vector<CacheType> caches = {KvFormat::ds_mla};
  for (const DType cache : test::cache_types()) caches.emplace_back(cache);
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType activations : test::kComputeTypes) {
      for (const CacheType& cache : caches) {
        CAPTURE(std::string(dtype_name(activations)));
        CAPTURE(format_name(cache.k));
        test::LatentScene scene{.tokens = 6, .rank = cache.k == KvFormat::ds_mla ? 128 : 20};
        scene.cache = cache;
        scene.round_to = activations;
        for (const bool choose : {false, true}) {
          CAPTURE(choose);
          if (choose) {  // the first token and the row's own
            scene.chosen_count = 2;
            scene.chosen = {0, -1, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5};
          }
          // Queries are rounded before they meet either backend.
          scene.queries = test::rounded_to(
              scene.values(1, scene.tokens * scene.n_heads * scene.head_dim()), activations);
          scene.activations = DType::f32;
          const test::LatentOutcome expected = run_latent(*cpu, scene);
          scene.activations = activations;
          const test::LatentOutcome found = run_latent(*gpu, scene);
          CHECK(found.cache == expected.cache);
          CHECK(found.amax == expected.amax);
          // Scores are sums of head_dim products below 1, values below 1.
          const double sums = 4.0 * static_cast<double>(scene.head_dim()) * test::kUnitF32;
          const std::vector<double> values(expected.attended.begin(), expected.attended.end());
          std::vector<double> allowed;
          for (const double value : values) {
            allowed.push_back(sums + test::rounding_of(value, activations));
          }
          test::expect_close(found.attended, values, allowed);
        }
      }
    }
  }
}

}  // namespace fp8kv
