// The ops of latent attention on the CPU.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/numbers/fp8.h"
#include "core/numbers/half.h"
#include "support/backends/compare.h"
#include "support/backends/latent_scene.h"

namespace fp8kv {
namespace {

using test::HeadsCase;
using test::LatentScene;

test::Elements weights_of(const HeadsCase& c, DType dtype) {
  Rng rng(5);
  return {test::random_floats(rng, c.n_heads * c.out_dim * c.in_dim), dtype,
          Shape{c.n_heads, c.out_dim, c.in_dim}};
}

std::vector<float> inputs_of(const HeadsCase& c) {
  Rng rng(6);
  return test::random_floats(rng, c.rows * c.n_heads * c.x_width);
}

}  // namespace

TEST_CASE("linear_heads: every head times its own matrix, in double precision") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t rows : {1, 6, 300}) {
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(rows);
        const HeadsCase c{.rows = rows};
        const std::vector<float> x = inputs_of(c);
        const test::Elements weights = weights_of(c, dtype);
        std::vector<double> expected, allowed;
        for (int64_t i = 0; i < rows * c.n_heads; ++i) {
          for (int64_t column = 0; column < c.out_width; ++column) {
            const int64_t r = column - c.out_first;
            double sum = -1, magnitudes = 0;
            if (r >= 0 && r < c.out_dim) {
              sum = 0;
              for (int64_t j = 0; j < c.in_dim; ++j) {
                float input = x[static_cast<size_t>(i * c.x_width + c.x_first + j)];
                if (dtype == DType::bf16) input = bf16_to_float(bf16_from_float(input));
                const int64_t row = i % c.n_heads * c.out_dim + r;
                const double product = double{input} * weights[row * c.in_dim + j];
                sum += product;
                magnitudes += std::abs(product);
              }
            }
            expected.push_back(sum);
            // A product and its addition round once each, for each of in_dim.
            allowed.push_back((2 * static_cast<double>(c.in_dim) * test::kUnitF32 +
                               test::parted_error(isa, dtype)) *
                              magnitudes);
          }
        }
        test::expect_close(test::run_heads(*backend, c, x, weights.view()), expected, allowed);
      }
    }
  }
}

TEST_CASE("linear_heads: a row has the same bits whatever rows and threads there are") {
  const HeadsCase many{.rows = 300};
  const std::vector<float> x = inputs_of(many);
  const test::Elements weights = weights_of(many, DType::bf16);
  const auto one = make_cpu_backend(1), three = make_cpu_backend(3);
  const std::vector<float> all = test::run_heads(*one, many, x, weights.view());
  CHECK(test::run_heads(*three, many, x, weights.view()) == all);
  // Now few rows, computed as in a step of many.
  HeadsCase few{.rows = 2};
  three->compute_as({300, 300});
  const std::vector<float> first(x.begin(), x.begin() + few.rows * few.n_heads * few.x_width);
  const std::vector<float> some = test::run_heads(*three, few, first, weights.view());
  CHECK(std::vector<float>(all.begin(), all.begin() + std::ssize(some)) == some);
}

TEST_CASE("copy_columns: some elements of every head, and no others") {
  const auto backend = make_cpu_backend(2);
  const Tensor from =
      test::tensor_of(*backend, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  const Tensor to = test::tensor_of(*backend, std::vector<float>(12), {2, 2, 3});
  backend->copy_columns({from.view(), 1}, {to.view(), 2}, 1);
  CHECK(test::floats_of(*backend, to.view()) ==
        std::vector<float>{0, 0, 2, 0, 0, 4, 0, 0, 6, 0, 0, 8});
}

TEST_CASE("latent attention: has the bits of attention with V beside K, of what V is in K") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const DType cache : {DType::f32, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
      for (const int64_t rank : {20, 512}) {
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(std::string(dtype_name(cache)));
        CAPTURE(rank);
        // A sanitizer takes minutes for 300 tokens of rank 512.
        const int64_t tokens = test::kSlow && rank == 512 ? 40 : 300;
        const LatentScene latent{.tokens = tokens, .rank = rank, .cache = cache};
        LatentScene beside = latent;
        beside.v_in_k = false;
        const test::LatentOutcome one = run_latent(*backend, latent);
        const test::LatentOutcome two = run_latent(*backend, beside);
        CHECK(one.attended == two.attended);
        CHECK(one.cache == two.cache);
      }
    }
  }
}

TEST_CASE("latent attention: fp8_ds_mla has codes by blocks, their scales, then BF16") {
  const LatentScene scene{
      .tokens = 5, .rope_dim = 6, .rank = 384, .cache = CacheType(KvFormat::ds_mla)};
  const std::vector<float> rotated = scene.rotated(), latent = scene.latent();
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    const test::LatentOutcome outcome = run_latent(*backend, scene);
    REQUIRE(outcome.cache.size() == size_t{2} * 4 * (384 + 3 * 4 + 6 * 2));
    for (int64_t token = 0; token < scene.tokens; ++token) {
      CAPTURE(token);
      // Two pages, the last one first.
      const auto* bytes = outcome.cache.data() + ((token < 4 ? 4 : 0) + token % 4) * 408;
      for (int64_t block = 0; block < 3; ++block) {
        const float* x = latent.data() + token * 384 + block * 128;
        float amax = 0;
        for (int i = 0; i < 128; ++i) amax = std::max(amax, std::abs(x[i]));
        float scale = 0;
        std::memcpy(&scale, bytes + 384 + block * 4, sizeof scale);
        CHECK(scale == (token == 0 ? FLT_MIN : amax / 448));
        int wrong = 0;
        for (int i = 0; i < 128; ++i) {
          const auto code = static_cast<uint8_t>(bytes[block * 128 + i]);
          wrong += code != fp8_encode<Fp8Format::e4m3fn>(x[i] / scale);
        }
        CHECK(wrong == 0);
      }
      for (int64_t i = 0; i < 6; ++i) {
        uint16_t code = 0;
        std::memcpy(&code, bytes + 396 + i * 2, sizeof code);
        CHECK(code == bf16_from_float(rotated[static_cast<size_t>(token * 6 + i)]));
      }
    }
  }
}

TEST_CASE("latent attention: fp8_ds_mla has the bits of an F32 cache of what it reads back") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const int64_t tokens : {7, 300, 1100}) {
      if (test::kSlow && tokens == 1100) continue;  // takes minutes
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(tokens);
      const LatentScene blocks{.tokens = tokens, .rank = 256, .cache = CacheType(KvFormat::ds_mla)};
      LatentScene plain = blocks;
      plain.cache = DType::f32;
      std::vector<float> rotated = blocks.rotated(), latent = blocks.latent();
      for (float& x : rotated) x = bf16_to_float(bf16_from_float(x));
      for (size_t first = 0; first < latent.size(); first += 128) {
        float amax = 0;
        for (size_t i = 0; i < 128; ++i) amax = std::max(amax, std::abs(latent[first + i]));
        const float scale = std::max(amax / 448, FLT_MIN);
        for (size_t i = 0; i < 128; ++i) {
          float& x = latent[first + i];
          x = fp8_decode<Fp8Format::e4m3fn>(fp8_encode<Fp8Format::e4m3fn>(x / scale)) * scale;
        }
      }
      CHECK(run_latent(*backend, blocks).attended ==
            run_latent(*backend, plain, rotated, latent).attended);
    }
  }
}

TEST_CASE("latent attention: what is rotated and the latent are counted apart") {
  const auto backend = make_cpu_backend(2);
  const LatentScene scene;
  const test::LatentOutcome outcome = run_latent(*backend, scene);
  CHECK(outcome.amax[1] == test::largest_magnitude(scene.values(2, 11 * 6)));
  CHECK(outcome.amax[2] == test::largest_magnitude(scene.values(3, 11 * 20)));
  CHECK(outcome.n_counted == std::vector<uint64_t>{11 * 3 * 26, 11 * 6, 11 * 20});
}

TEST_CASE("route: a group is worth its largest score alone where the routing says so") {
  const auto backend = make_cpu_backend(1);
  // With two scores per group the first group is best, with one the second.
  const Tensor logits = test::tensor_of(*backend, std::vector<float>{2, 2, 0, 3, -9, -9}, {1, 6});
  const auto chosen = [&](GroupWorth worth) {
    const Tensor ids = backend->allocate(DType::i32, {1, 1});
    const Tensor weights = backend->allocate(DType::f32, {1, 1});
    const Routing routing{.per_token = 1, .groups = 3, .groups_kept = 1, .group_worth = worth};
    backend->route(logits.view(), routing, {}, {ids.view(), weights.view(), {}});
    return ids.view().as<int32_t>()[0];
  };
  CHECK(chosen(GroupWorth::two_largest) == 0);
  CHECK(chosen(GroupWorth::largest) == 3);
}

}  // namespace fp8kv
