// Attention on the CPU, against its definition in double precision.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/backends/cpu_attention_scene.h"

namespace fp8kv {
namespace {

using Scene = test::CpuAttentionScene;
using Setup = test::CpuAttentionSetup;
using test::kCacheTypes;
using test::many;

void check_everywhere(Setup setup) {
  for (const DType model : {DType::f16, DType::bf16, DType::f32}) {
    CAPTURE(std::string(dtype_name(model)));
    setup.model = model;
    const auto memory = make_cpu_backend(1);
    const Scene scene(*memory, setup, 11);
    const Scene::Definition definition = scene.definition();
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      const auto backend = make_cpu_backend(3, isa);
      test::expect_close(scene.run(*backend), definition.expected, definition.allowed);
    }
  }
}

}  // namespace

TEST_CASE("attention: equals the definition in double for every type of cache") {
  for (const DType dtype : kCacheTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    check_everywhere({.dtype = dtype, .sequences = {{37, 37}, {50, 1}}});
  }
}

TEST_CASE("attention: takes any ratio of query heads to KV heads") {
  for (const int64_t group : {1, 2, 4, 7, 8}) {
    CAPTURE(group);
    check_everywhere({.n_heads = 2 * group, .sequences = {{33, 33}, {20, 1}}});
  }
  check_everywhere({.n_heads = 8, .n_kv_heads = 1});
  check_everywhere({.n_heads = 3, .n_kv_heads = 3});
}

TEST_CASE("attention: takes any even head size") {
  for (const int64_t head_dim : {2, 6, 32, 48, 80, 128, 300}) {
    CAPTURE(head_dim);
    check_everywhere({.head_dim = head_dim, .dtype = DType::f8_e4m3, .sequences = {{19, 5}}});
  }
}

TEST_CASE("attention: V may have fewer elements than K") {
  for (const DType dtype : kCacheTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    check_everywhere(
        {.head_dim = 192, .own_v_dim = 128, .dtype = dtype, .sequences = {{40, 40}, {300, 1}}});
    check_everywhere({.head_dim = 48, .own_v_dim = 20, .dtype = dtype, .sequences = {{90, 3}}});
  }
}

TEST_CASE("attention: takes contexts that end before, at and after a page and a block") {
  for (const int64_t page_size : {16, 64}) {
    for (const int64_t context : {1, 15, 16, 17, 64, 255, 256, 257, 513}) {
      CAPTURE(page_size);
      CAPTURE(context);
      check_everywhere({.page_size = page_size, .sequences = {{context, 1}, {3, 3}}});
    }
  }
}

TEST_CASE("attention: sees no further back than the window") {
  for (const int64_t window : {1, 5, 16, 300, 5000}) {
    CAPTURE(window);
    check_everywhere({.window = window, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
}

TEST_CASE("attention: each KV head sees the blocks that are chosen for it") {
  for (const DType dtype : kCacheTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (const test::ChosenBlocks& chosen :
         {test::ChosenBlocks{1, 7}, {3, 1}, {3, 5}, {2, 128}, {40, 1}}) {
      CAPTURE(chosen.count);
      CAPTURE(chosen.block);
      check_everywhere({.n_heads = 6,
                        .dtype = dtype,
                        .chosen = chosen,
                        .sequences = {{40, 40}, {many(700), 2}, {1, 1}}});
    }
  }
  check_everywhere({.n_heads = 7, .n_kv_heads = 1, .head_dim = 6, .chosen = {4, 3}});
}

TEST_CASE("attention: all heads see the pooled blocks that are chosen, and the row's own") {
  for (const test::ChosenBlocks& chosen :
       {test::ChosenBlocks{2, 3, true}, {4, 5, true}, {3, 128, true}}) {
    CAPTURE(chosen.count);
    CAPTURE(chosen.block);
    check_everywhere({.n_heads = 6,
                      .dtype = DType::f8_e4m3,
                      .chosen = chosen,
                      .sequences = {{40, 40}, {many(700), 2}, {1, 1}}});
  }
  check_everywhere({.n_heads = 7, .n_kv_heads = 1, .head_dim = 6, .chosen = {4, 3, true}});
}

TEST_CASE("attention: sees no further back than the beginning of its chunk") {
  for (const int64_t chunk : {1, 5, 16, 300, 5000}) {
    CAPTURE(chunk);
    check_everywhere({.chunk = chunk, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
}

TEST_CASE("attention: caps scores by tanh") {
  for (const float cap : {0.5f, 2.0f, 30.0f}) {
    CAPTURE(cap);
    check_everywhere({.cap = cap, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
    check_everywhere(
        {.dtype = DType::f8_e4m3, .window = 16, .cap = cap, .sequences = {{300, 1}, {40, 17}}});
  }
}

TEST_CASE("attention: adds the bias of a head and position to scores") {
  check_everywhere({.bias = true, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  check_everywhere({.dtype = DType::f8_e4m3,
                    .window = 16,
                    .cap = 2,
                    .bias = true,
                    .sequences = {{300, 1}, {40, 17}}});
}

TEST_CASE("attention: adds the bias of a head and distance to scores") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    check_everywhere({.sink_dtype = dtype,
                      .distances = {.dim = 5, .extent = 30},
                      .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
  check_everywhere({.dtype = DType::f8_e4m3,
                    .window = 16,
                    .cap = 2,
                    .sinks = true,
                    .distances = {.dim = 16, .extent = 16, .grows = true},
                    .sequences = {{300, 1}, {40, 17}}});
  check_everywhere(
      {.distances = {.dim = 1, .extent = 900, .grows = true}, .sequences = {{800, 3}, {5, 2}}});
}

TEST_CASE("attention: a sink of a head takes its part of the softmax, and has no value") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    check_everywhere(
        {.sinks = true, .sink_dtype = dtype, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
  check_everywhere({.dtype = DType::f8_e4m3,
                    .window = 16,
                    .cap = 2,
                    .bias = true,
                    .sinks = true,
                    .sequences = {{300, 1}, {40, 17}}});
}

TEST_CASE("attention: takes prompts, continued prompts and single steps in one batch") {
  check_everywhere({.dtype = DType::f8_e4m3,
                    .sequences = {{300, many(300)}, {1, 1}, {620, 1}, {90, 17}, {1100, 1}}});
}

TEST_CASE("attention: a query that matches one key gives that token's value") {
  // Keys are one-hot, and each query picks one far above the rest, so the answer is obvious.
  constexpr int64_t kTokens = 8;
  std::vector<float> k(kTokens * kTokens), v(kTokens * kTokens), q(kTokens * kTokens);
  for (int64_t t = 0; t < kTokens; ++t) {
    k[t * kTokens + t] = 1;
    for (int64_t d = 0; d < kTokens; ++d) v[t * kTokens + d] = static_cast<float>(10 * t + d);
  }
  const int64_t wanted[kTokens] = {0, 1, 0, 2, 3, 5, 1, 7};
  for (int64_t row = 0; row < kTokens; ++row) q[row * kTokens + wanted[row]] = 200;
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    const Tensor queries = test::tensor_of(*backend, q, Shape{kTokens, 1, kTokens});
    const Tensor out = backend->allocate(DType::f32, Shape{kTokens, 1, kTokens});
    const Tensor positions =
        test::tensor_of(*backend, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}, Shape{kTokens});
    const Tensor indptr = test::tensor_of(*backend, std::vector<int32_t>{0, 8}, Shape{2});
    const Tensor pages = test::tensor_of(*backend, std::vector<int32_t>{0}, Shape{1, 1});
    const Tensor context = test::tensor_of(*backend, std::vector<int32_t>{8}, Shape{1});
    const PagedKv kv{k.data(), v.data(), nullptr, nullptr, KvFormat::f32, KvFormat::f32, 8, 1, 8};
    backend->attention(
        queries.view(), kv,
        {positions.view(), positions.view(), indptr.view(), pages.view(), context.view()},
        {1.0f, 0}, out.view());
    const std::vector<float> values = test::floats_of(*backend, out.view());
    for (int64_t row = 0; row < kTokens; ++row) {
      for (int64_t d = 0; d < kTokens; ++d) {
        CHECK(values[row * kTokens + d] == static_cast<float>(10 * wanted[row] + d));
      }
    }
  }
}

}  // namespace fp8kv
