// Attention on every GPU backend that runs here, against its definition in double precision.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/attention_scene.h"
#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"

namespace fp8kv {
namespace {

using test::Scene;
using test::Setup;

void check_everywhere(const Setup& setup) {
  const Scene scene(setup, 11);
  const test::Expected expected = scene.expected();
  test::on_every_backend([&](Backend& backend) {
    test::expect_close(scene.run(backend), expected.values, expected.allowed);
  });
}

}  // namespace

TEST_CASE("gpu attention: equals the definition for every type of activation and cache") {
  for (const DType activations : test::kComputeTypes) {
    for (const DType cache : test::cache_types()) {
      CAPTURE(std::string(dtype_name(activations)));
      CAPTURE(std::string(dtype_name(cache)));
      check_everywhere(
          {.activations = activations, .cache = cache, .sequences = {{37, 37}, {50, 1}}});
      check_everywhere(
          {.activations = activations, .cache = cache, .sequences = {{37, 1}, {50, 1}}});
      // A size that no matrix instruction takes.
      check_everywhere({.head_dim = 10,
                        .activations = activations,
                        .cache = cache,
                        .sequences = {{19, 5}, {50, 1}}});
    }
  }
}

TEST_CASE("gpu attention: takes any ratio of query heads to KV heads") {
  for (const int64_t group : {1, 2, 4, 7, 8, 12, 20}) {
    CAPTURE(group);
    check_everywhere({.n_heads = 2 * group, .sequences = {{33, 33}, {20, 1}}});
    check_everywhere({.n_heads = 2 * group, .sequences = {{33, 1}, {20, 1}}});
  }
}

TEST_CASE("gpu attention: takes any even head size up to 512") {
  for (const int64_t head_dim : {2, 8, 64, 80, 96, 128, 256, 258, 320, 510, 512}) {
    for (const DType cache : {DType::f8_e4m3, DType::f16}) {
      CAPTURE(head_dim);
      CAPTURE(std::string(dtype_name(cache)));
      check_everywhere({.head_dim = head_dim, .cache = cache, .sequences = {{19, 5}}});
      check_everywhere({.head_dim = head_dim, .cache = cache, .sequences = {{70, 1}}});
    }
  }
}

TEST_CASE("gpu attention: prompts in every size of head and cache of the fast kernels") {
  for (const DType cache : test::cache_types()) {
    if (cache == DType::f32) continue;
    for (const int64_t head_dim : {64, 96, 128, 256}) {
      CAPTURE(std::string(dtype_name(cache)));
      CAPTURE(head_dim);
      // A 16-bit cache is multiplied as it is, so its type is that of the queries.
      const DType activations = cache == DType::bf16 ? DType::bf16 : DType::f16;
      check_everywhere({.n_heads = 2,
                        .n_kv_heads = 1,
                        .head_dim = head_dim,
                        .activations = activations,
                        .cache = cache,
                        .sequences = {{19, 7}}});
    }
  }
}

TEST_CASE("gpu attention: V may have fewer elements than K") {
  for (const DType activations : test::kComputeTypes) {
    for (const DType cache : test::cache_types()) {
      CAPTURE(std::string(dtype_name(activations)));
      CAPTURE(std::string(dtype_name(cache)));
      Setup setup{.head_dim = 192, .own_v_dim = 128, .activations = activations, .cache = cache};
      setup.sequences = {{19, 19}, {50, 1}};
      check_everywhere(setup);
      setup.head_dim = 128;  // a size of the fast kernels
      setup.own_v_dim = 64;
      setup.sequences = {{19, 1}, {50, 1}};
      check_everywhere(setup);
    }
  }
}

// Sizes of DeepSeek, Mistral 4 and MiniCPM 3, and one that no matrix instruction takes. Chosen
// tokens are one list for all heads.
TEST_CASE("gpu attention: V may be a part of K, also for chosen tokens and with sinks") {
  for (const DType activations : test::kComputeTypes) {
    for (const DType cache : test::cache_types()) {
      for (const auto& [head_dim, rank] : {std::pair{576, 512}, {320, 256}, {288, 256}, {40, 30}}) {
        CAPTURE(std::string(dtype_name(activations)));
        CAPTURE(std::string(dtype_name(cache)));
        CAPTURE(head_dim);
        if (head_dim != 576 && cache != DType::f8_e4m3) continue;
        Setup setup{.n_heads = 5,
                    .n_kv_heads = 1,
                    .head_dim = head_dim,
                    .own_v_dim = rank,
                    .latent = true,
                    .activations = activations,
                    .cache = cache,
                    .sequences = {{37, 19}, {50, 1}}};
        check_everywhere(setup);
        if (cache != DType::f8_e4m3) continue;
        setup.chosen = {1, 7};
        setup.sinks = true;
        setup.n_heads = 36;  // more than a tile has queries
        setup.sequences = {{20, 2}, {40, 1}};
        check_everywhere(setup);
      }
    }
  }
}

// One sequence has 16 items at most, and each warp gets a block of its own. Emulated devices
// compute two sequences by warps that share blocks.
TEST_CASE("gpu attention: equals the definition for one and two sequences of one KV head") {
  for (const DType cache : test::cache_types()) {
    for (const int64_t head_dim : {64, 96, 128, 256}) {
      CAPTURE(std::string(dtype_name(cache)));
      CAPTURE(head_dim);
      Setup setup{.n_kv_heads = 1,
                  .head_dim = head_dim,
                  .activations = DType::bf16,
                  .cache = cache,
                  .sequences = {{330, 1}}};
      check_everywhere(setup);
      setup.sequences = {{330, 1}, {40, 1}};
      check_everywhere(setup);
    }
  }
}

TEST_CASE("gpu attention: takes contexts that end before, at and after a page and a chunk") {
  for (const int64_t page_size : {16, 32, 64}) {
    for (const int64_t context : {1, 15, 16, 17, 63, 64, 65, 257, 1030}) {
      CAPTURE(page_size);
      CAPTURE(context);
      check_everywhere({.page_size = page_size, .sequences = {{context, 1}, {3, 1}}});
    }
  }
}

TEST_CASE("gpu attention: caps scores by tanh, in steps of one row and of many") {
  for (const float cap : {2.0f, 0.5f, 30.0f}) {
    for (const DType activations : test::kComputeTypes) {
      CAPTURE(cap);
      CAPTURE(std::string(dtype_name(activations)));
      check_everywhere(
          {.activations = activations, .cap = cap, .sequences = {{40, 20}, {100, 2}, {1, 1}}});
      check_everywhere({.activations = activations,
                        .window = 16,
                        .cap = cap,
                        .sequences = {{40, 1}, {100, 1}, {1, 1}}});
    }
  }
}

// The second batch has a row of several chunks, whose sums a second kernel adds up.
TEST_CASE("gpu attention: caps and sinks in every size of head and cache of the fast kernels") {
  for (const DType cache : test::cache_types()) {
    if (cache == DType::f32) continue;
    for (const int64_t head_dim : {64, 96, 128, 256}) {
      CAPTURE(std::string(dtype_name(cache)));
      CAPTURE(head_dim);
      Setup setup{.n_heads = 6,
                  .n_kv_heads = 1,
                  .head_dim = head_dim,
                  .activations = cache == DType::bf16 ? DType::bf16 : DType::f16,
                  .cache = cache,
                  .cap = 4,
                  .sinks = true,
                  .sequences = {{19, 7}, {40, 3}}};
      check_everywhere(setup);
      setup.sequences = {{330, 1}, {40, 1}};
      check_everywhere(setup);
    }
  }
}

TEST_CASE("gpu attention: options of scores come together in heads of any size") {
  for (const int64_t head_dim : {80, 112, 512}) {
    for (const DType cache : {DType::f8_e4m3, DType::f16}) {
      CAPTURE(head_dim);
      CAPTURE(std::string(dtype_name(cache)));
      Setup setup{.n_heads = 6,
                  .head_dim = head_dim,
                  .cache = cache,
                  .cap = 4,
                  .bias = true,
                  .sinks = true,
                  .sequences = {{40, 20}, {100, 2}, {1, 1}}};
      setup.window = 33;
      check_everywhere(setup);
      setup.window = 0;
      setup.chunk = 24;
      check_everywhere(setup);
      setup.page_size = 6;
      setup.chunk = 0;
      setup.bias = false;
      setup.chosen = {3, 5};
      check_everywhere(setup);
    }
  }
}

TEST_CASE("gpu attention: adds the bias of a head and position to scores") {
  for (const DType activations : test::kComputeTypes) {
    CAPTURE(std::string(dtype_name(activations)));
    check_everywhere(
        {.activations = activations, .bias = true, .sequences = {{40, 20}, {100, 2}, {1, 1}}});
  }
}

TEST_CASE("gpu attention: adds the bias of a head and distance to scores") {
  for (const DType activations : test::kComputeTypes) {
    for (const int64_t head_dim : {10, 64, 128}) {
      CAPTURE(std::string(dtype_name(activations)));
      CAPTURE(head_dim);
      Setup setup{.n_heads = 6,
                  .head_dim = head_dim,
                  .activations = activations,
                  .distances = {.dim = 5, .extent = 30, .grows = true},
                  .sequences = {{40, 20}, {100, 2}, {1, 1}}};
      check_everywhere(setup);
      setup.window = 16;
      setup.distances = {.dim = 16, .extent = 16};
      check_everywhere(setup);
      setup.sequences = {{300, 1}, {40, 1}};
      check_everywhere(setup);
    }
  }
}

TEST_CASE("gpu attention: a sink of a head takes its part of the softmax, and has no value") {
  for (const DType activations : test::kComputeTypes) {
    CAPTURE(std::string(dtype_name(activations)));
    check_everywhere(
        {.activations = activations, .sinks = true, .sequences = {{40, 20}, {100, 2}, {1, 1}}});
    check_everywhere({.activations = activations,
                      .window = 16,
                      .sinks = true,
                      .sequences = {{40, 1}, {100, 1}, {1, 1}}});
  }
}

TEST_CASE("gpu attention: each KV head sees the blocks that are chosen for it") {
  for (const DType activations : test::kComputeTypes) {
    for (const DType cache : test::cache_types()) {
      CAPTURE(std::string(dtype_name(activations)));
      CAPTURE(std::string(dtype_name(cache)));
      for (const test::ChosenBlocks& chosen : {test::ChosenBlocks{1, 7}, {3, 5}, {3, 4, true}}) {
        check_everywhere({.n_heads = 6,
                          .activations = activations,
                          .cache = cache,
                          .chosen = chosen,
                          .sequences = {{40, 20}, {100, 2}, {1, 1}}});
      }
    }
  }
}

TEST_CASE("gpu attention: sees no further back than the beginning of its chunk") {
  for (const int64_t chunk : {1, 16, 100, 5000}) {
    CAPTURE(chunk);
    check_everywhere({.chunk = chunk, .sequences = {{40, 40}, {200, 2}, {1, 1}}});
    check_everywhere({.chunk = chunk, .sequences = {{40, 1}, {300, 1}, {1, 1}}});
    check_everywhere(
        {.activations = DType::f32, .chunk = chunk, .sequences = {{40, 40}, {300, 1}}});
  }
}

TEST_CASE("gpu attention: sees no further back than the window") {
  for (const int64_t window : {1, 5, 16, 100, 5000}) {
    CAPTURE(window);
    check_everywhere({.window = window, .sequences = {{40, 40}, {200, 2}, {1, 1}}});
    check_everywhere({.window = window, .sequences = {{40, 1}, {300, 1}, {1, 1}}});
  }
}

TEST_CASE("gpu attention: takes prompts, continued prompts and single steps in one batch") {
  check_everywhere({.sequences = {{130, 130}, {1, 1}, {220, 1}, {90, 17}}});
}

TEST_CASE("gpu attention: takes queries far from 1") {
  check_everywhere({.activations = DType::bf16, .sequences = {{40, 1}}, .q_range = 1e6f});
  check_everywhere({.activations = DType::bf16, .sequences = {{40, 40}}, .q_range = 1e-20f});
}

// The query fits one token; many later ones weigh e^-12 of it each. Such a weight is below f16's
// normal numbers, but together they are half a per cent.
TEST_CASE("gpu attention: adds up a long tail of small weights") {
  constexpr int64_t kTokens = 1024, kHeadDim = 64, kPage = 64;
  std::vector<float> k(kTokens * kHeadDim, 0.0f), v(kTokens * kHeadDim, 1.0f);
  std::fill_n(v.begin(), kHeadDim, 0.0f);
  k[0] = 12.0f;
  const double tail = (kTokens - 1) * std::exp(-12.0);
  for (const int64_t rows : {1, 3}) {  // kernels for few and for many rows of a sequence
    CAPTURE(rows);
    test::on_every_backend([&](Backend& backend) {
      std::vector<float> queries(static_cast<size_t>(rows * kHeadDim), 0.0f);
      for (int64_t row = 0; row < rows; ++row) queries[static_cast<size_t>(row * kHeadDim)] = 1.0f;
      const Shape shape{rows, 1, kHeadDim};
      const Tensor q = test::put(backend, queries, DType::f16, shape);
      const Tensor out = backend.allocate(DType::f16, shape);
      const std::vector<int32_t> last(static_cast<size_t>(rows), kTokens - 1);
      const Tensor positions = test::put(backend, last, {rows});
      const Tensor indptr = test::put(backend, {0, static_cast<int32_t>(rows)}, {2});
      std::vector<int32_t> table;
      for (int32_t page = 0; page < kTokens / kPage; ++page) table.push_back(page);
      const Tensor pages = test::put(backend, table, {1, kTokens / kPage});
      const Shape pool{kTokens / kPage, 1, kPage, kHeadDim};
      const Tensor k_pool = test::put(backend, k, DType::f16, pool);
      const Tensor v_pool = test::put(backend, v, DType::f16, pool);
      const PagedKv kv{k_pool.view().data,
                       v_pool.view().data,
                       nullptr,
                       nullptr,
                       KvFormat::f16,
                       KvFormat::f16,
                       kPage,
                       1,
                       kHeadDim};
      backend.attention(q.view(), kv,
                        {positions.view(), positions.view(), indptr.view(), pages.view(), {}},
                        {1.0f, 0}, out.view());
      const std::vector<float> actual = test::get(backend, out.view());
      for (const float x : actual) CHECK(std::abs(double{x} / (tail / (1 + tail)) - 1) < 0x1p-10);
    });
  }
}

TEST_CASE("gpu recording: attention keeps its working memory when another step needs more") {
  for (const int64_t head_dim : {64, 80}) {  // rows are cut in two kernels
    const Setup few{.head_dim = head_dim, .sequences = {{330, 1}}};
    Setup many = few;
    many.sequences = {{330, 1}, {700, 1}, {700, 1}};
    for (const test::NamedBackend& named : test::gpu_backends()) {
      CAPTURE(named.name);
      const auto backend = named.make();
      if (!backend->can_record()) continue;
      const std::vector<float> replayed = Scene(few, 12).run(*backend, [&](const auto& attend) {
        attend();  // takes the memory, which a recorded step may not
        backend->begin_recording();
        attend();
        const Recording recording = backend->end_recording();
        Scene(many, 13).run(*backend);
        backend->replay(recording);
      });
      CHECK(replayed == Scene(few, 12).run(*backend));
    }
  }
}

TEST_CASE("gpu attention: a sequence's bits do not depend on the others, nor on any order") {
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto backend = named.make();
    // The first is computed by warps with a block each, and the second is not.
    const Setup one_head{.n_kv_heads = 1, .sequences = {{530, 1}}};
    Setup one_head_many = one_head;
    one_head_many.sequences = {{530, 1}, {70, 1}, {1300, 1}};
    const std::vector<float> lone = Scene(one_head, 12).run(*backend);
    const std::vector<float> shared = Scene(one_head_many, 12).run(*backend);
    CHECK(std::equal(lone.begin(), lone.end(), shared.begin()));
    const std::vector<float> alone = Scene({.sequences = {{530, 1}}}, 12).run(*backend);
    const Scene many({.sequences = {{530, 1}, {70, 1}, {1300, 1}}}, 12);
    const std::vector<float> expected = many.run(*backend);
    CHECK(std::equal(alone.begin(), alone.end(), expected.begin()));
    for (uint64_t seed = 1; seed < 6u; ++seed) {
      CAPTURE(seed);
      test::set_order(seed);
      const std::vector<float> actual = many.run(*backend);
      test::set_order(0);
      CHECK(actual == expected);
    }
  }
}

}  // namespace fp8kv
