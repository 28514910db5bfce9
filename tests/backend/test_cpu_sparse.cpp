// The ops of sparse attention on the CPU.
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/numbers/float_order.h"
#include "support/backends/choice_scene.h"
#include "support/backends/latent_scene.h"

namespace fp8kv {
namespace {

using test::ChoiceScene;
using test::LatentScene;

// The rows of some tokens out of all, each of `size` floats.
std::vector<float> picked(const std::vector<float>& all, const std::vector<int32_t>& tokens,
                          int64_t size) {
  std::vector<float> rows;
  for (const int32_t token : tokens) {
    rows.insert(rows.end(), all.begin() + token * size, all.begin() + (token + 1) * size);
  }
  return rows;
}

}  // namespace

TEST_CASE("float order: larger for larger numbers, and 0 for every NaN") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rising = {-inf,   -3e38f, -1.0f,      -1e-40f, -0.0f, 0.0f,
                                     1e-40f, 1.0f,   1.0000001f, 3e38f,   inf};
  for (size_t i = 1; i < rising.size(); ++i) {
    CAPTURE(rising[i]);
    CHECK(float_order(rising[i - 1]) < float_order(rising[i]));
  }
  CHECK(float_order(-inf) > 0);
  CHECK(float_order(std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(float_order(-std::numeric_limits<float>::quiet_NaN()) == 0);
}

TEST_CASE("choose_tokens: the tokens with the highest scores, the earlier among equals, rising") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(3, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t count : {1, 7, 300}) {
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(count);
        const ChoiceScene few{.count = count, .dtype = dtype};
        CHECK(test::run_choice(*backend, few) == few.expected());
        const ChoiceScene many{.before = 290,
                               .rows = 33,
                               .n_heads = 9,
                               .head_dim = 20,
                               .count = count,
                               .scored_rows = 40,
                               .dtype = dtype};
        CHECK(test::run_choice(*backend, many) == many.expected());
      }
    }
  }
}

TEST_CASE("choose_tokens: each head chooses blocks by their highest score, and its last ones") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(3, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t block : {1, 3, 4, 128}) {
        for (const int64_t local : {0, 1, 2}) {
          CAPTURE(std::string(cpu_isa_name(isa)));
          CAPTURE(std::string(dtype_name(dtype)));
          CAPTURE(block);
          CAPTURE(local);
          ChoiceScene scene{.count = 2, .block = block, .local_blocks = local, .by_head = true};
          scene.dtype = dtype;
          CHECK(test::run_choice(*backend, scene) == scene.expected());
          scene.before = test::kSlow ? 40 : 290;
          scene.count = 5;
          scene.n_heads = 4;
          scene.head_dim = 20;
          CHECK(test::run_choice(*backend, scene) == scene.expected());
        }
      }
    }
  }
}

TEST_CASE("choose_tokens: by pooled keys all heads choose whole blocks, and the row's own") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(3, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t block : {2, 3, 4, 128}) {
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(block);
        ChoiceScene scene{.count = 3, .block = block, .pooled = true, .dtype = dtype};
        CHECK(test::run_choice(*backend, scene) == scene.expected());
        scene.before = test::kSlow ? 40 : 290;
        scene.n_heads = 9;
        scene.head_dim = 20;
        CHECK(test::run_choice(*backend, scene) == scene.expected());
      }
    }
  }
}

TEST_CASE("sparse attention: with every token chosen it has the bits of attention to all") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const CacheType& cache : {CacheType(DType::f32), CacheType(DType::bf16),
                                   CacheType(DType::f8_e4m3), CacheType(KvFormat::ds_mla)}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(format_name(cache.k));
      const LatentScene all{.tokens = test::kSlow ? 40 : 300, .rank = 128, .cache = cache};
      LatentScene sparse = all;
      sparse.chosen_count = all.tokens + 3;
      for (int32_t row = 0; row < all.tokens; ++row) {
        for (int32_t i = 0; i < sparse.chosen_count; ++i) {
          sparse.chosen.push_back(i <= row ? i : -1);
        }
      }
      CHECK(run_latent(*backend, sparse).attended == run_latent(*backend, all).attended);
    }
  }
}

TEST_CASE("sparse attention: has the bits of attention to a cache of the chosen tokens alone") {
  // In both caches the last row is the same, and sees these tokens.
  const std::vector<int32_t> tokens = {0, 2, 3, 9, 17, 18, 19, 30, 39};
  const auto count = std::ssize(tokens);
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const CacheType& cache : {CacheType(DType::f32), CacheType(DType::bf16),
                                   CacheType(DType::f8_e4m3), CacheType(KvFormat::ds_mla)}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(format_name(cache.k));
      LatentScene sparse{.tokens = 40, .rank = 128, .cache = cache};
      const std::vector<float> rotated = sparse.rotated(), latent = sparse.latent();
      const int64_t row = sparse.n_heads * sparse.head_dim();
      sparse.queries = sparse.values(1, sparse.tokens * row);
      LatentScene alone = sparse;
      alone.tokens = count;
      alone.queries = picked(sparse.queries, tokens, row);
      sparse.chosen_count = count;
      sparse.chosen.assign(static_cast<size_t>(sparse.tokens * count), -1);
      for (int64_t i = 0; i < sparse.tokens - 1; ++i) {
        // Rows that see fewer tokens than are chosen see all of them.
        for (int64_t t = 0; t < std::min(i + 1, count); ++t) {
          sparse.chosen[static_cast<size_t>(i * count + t)] = static_cast<int32_t>(t);
        }
      }
      std::copy(tokens.begin(), tokens.end(), sparse.chosen.end() - count);
      const auto found = run_latent(*backend, sparse, rotated, latent).attended;
      const auto expected = run_latent(*backend, alone, picked(rotated, tokens, sparse.rope_dim),
                                       picked(latent, tokens, sparse.rank))
                                .attended;
      const auto last = alone.n_heads * alone.rank;
      CHECK(std::vector<float>(found.end() - last, found.end()) ==
            std::vector<float>(expected.end() - last, expected.end()));
    }
  }
}

}  // namespace fp8kv
