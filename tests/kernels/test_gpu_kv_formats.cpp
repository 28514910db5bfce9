// Caches of every format in the general kernels, against the CPU's.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/compare.h"
#include "support/backends/format_scene.h"
#include "support/backends/gpu_backends.h"

namespace fp8kv {

TEST_CASE("gpu kv formats: the CPU's bytes, and its attention within rounding") {
  const auto cpu = make_cpu_backend(2);
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const CacheType& cache : test::made_caches()) {
      for (const int64_t head_dim : {32, 80}) {
        for (const DType round_to : {DType::f32, DType::bf16}) {
          const test::FormatScene s{.cache = cache,
                                    .head_dim = head_dim,
                                    .own_v_dim = head_dim == 80 ? 48 : 0,
                                    .round_to = round_to,
                                    .window = head_dim == 80 ? 9 : 0};
          CAPTURE(format_name(cache.k));
          CAPTURE(format_name(cache.v));
          CAPTURE(head_dim);
          const test::FormatOutcome expected = run_format(*cpu, s), found = run_format(*gpu, s);
          CHECK(found.k == expected.k);
          CHECK(found.v == expected.v);
          // The GPU's and the CPU's results both have errors.
          test::expect_close(
              found.attended,
              std::vector<double>(expected.attended.begin(), expected.attended.end()),
              std::vector<double>(expected.attended.size(), 2 * s.allowed_error()));
        }
      }
    }
  }
}

TEST_CASE("gpu kv formats: every compute type, with scores capped and not") {
  const auto cpu = make_cpu_backend(2);
  for (const auto& [name, make] : test::gpu_backends()) {
    CAPTURE(name);
    const auto gpu = make();
    for (const DType activations : test::kComputeTypes) {
      for (const CacheType& cache :
           {CacheType(KvFormat::nvfp4), {KvFormat::bf16, KvFormat::e5m2}}) {
        for (const float cap : {0.0f, 3.0f}) {
          CAPTURE(std::string(dtype_name(activations)));
          CAPTURE(format_name(cache.k));
          CAPTURE(cap);
          test::FormatScene s{.cache = cache, .tokens = 9, .round_to = activations, .cap = cap};
          s.rotary_dim = cap > 0 ? 16 : 2;  // with vectors and without
          const test::FormatOutcome expected = run_format(*cpu, s);
          s.activations = activations;
          const test::FormatOutcome found = run_format(*gpu, s);
          CHECK(found.k == expected.k);
          CHECK(found.v == expected.v);
          std::vector<double> values(expected.attended.begin(), expected.attended.end()), allowed;
          for (const double value : values) {
            allowed.push_back(2 * s.allowed_error() + test::rounding_of(value, activations));
          }
          test::expect_close(found.attended, values, allowed);
        }
      }
    }
  }
}

}  // namespace fp8kv
