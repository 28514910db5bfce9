// Attention on the CPU has the same bits however rows, pages and threads divide its work.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/backends/cpu.h"
#include "support/backends/cpu_attention_scene.h"

namespace fp8kv {
namespace {

using Scene = test::CpuAttentionScene;
using Setup = test::CpuAttentionSetup;
using test::kCacheTypes;
using test::many;

}  // namespace

// A power of two changes no bit of a score, so no bit may be lost at either end of a range.
TEST_CASE("attention: has the same bits with larger and smaller queries") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : kCacheTypes) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      Setup setup{.dtype = dtype, .sequences = {{37, 37}, {50, 1}}};
      const std::vector<float> expected = Scene(*backend, setup, 12).run(*backend);
      for (const int power : {-40, -12, 20, 40}) {
        setup.power = power;
        CAPTURE(power);
        CHECK(Scene(*backend, setup, 12).run(*backend) == expected);
      }
    }
  }
}

TEST_CASE("attention: a row with a sink has the same bits in a prompt, and for any threads") {
  Setup setup{.dtype = DType::f8_e4m3, .sinks = true, .sequences = {{1100, 600}}};
  const auto one = make_cpu_backend(1);
  const std::vector<float> prompt = Scene(*one, setup, 12).run(*one);
  setup.sequences = {{1100, 1}};
  for (const int threads : {1, 4}) {
    const auto backend = make_cpu_backend(threads);
    const std::vector<float> step = Scene(*backend, setup, 12).run(*backend);
    CHECK(std::vector<float>(prompt.end() - std::ssize(step), prompt.end()) == step);
  }
}

TEST_CASE("attention: a row of a prompt has the same bits as a step of its own") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const int64_t window : {0, 100}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(window);
      const auto backend = make_cpu_backend(3, isa);
      Setup setup{.dtype = DType::f8_e4m3, .window = window, .sequences = {{530, many(530)}}};
      const std::vector<float> prompt = Scene(*backend, setup, 12).run(*backend);
      setup.sequences = {{530, 1}};
      const std::vector<float> step = Scene(*backend, setup, 12).run(*backend);
      CHECK(std::vector<float>(prompt.end() - step.size(), prompt.end()) == step);
    }
  }
}

TEST_CASE("attention: has the same bits for any size of page") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    Setup setup{.page_size = 16, .dtype = DType::bf16, .sequences = {{300, many(300)}, {70, 1}}};
    const std::vector<float> paged = Scene(*backend, setup, 14).run(*backend);
    setup.page_size = 300;  // each sequence fits one page
    CHECK(Scene(*backend, setup, 14).run(*backend) == paged);
  }
}

TEST_CASE("attention: an fp8 cache has the bits of an f32 cache of its values, scales exact") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : {DType::f8_e4m3, DType::f8_e4m3fnuz, DType::f8_e5m2}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      Setup setup{.dtype = dtype, .exact_scales = true, .sequences = {{300, many(300)}, {90, 1}}};
      const std::vector<float> narrow = Scene(*backend, setup, 15).run(*backend);
      setup.rounded_to = dtype;
      setup.dtype = DType::f32;
      CHECK(Scene(*backend, setup, 15).run(*backend) == narrow);
    }
  }
}

TEST_CASE("attention: has the same bits for any number of threads") {
  for (const auto& sequences :
       {std::vector<std::pair<int64_t, int64_t>>{{1500, 1}}, {{200, 200}, {1300, 2}, {5, 1}}}) {
    const Setup setup{.dtype = DType::f16, .sequences = sequences};
    const auto single = make_cpu_backend(1);
    const std::vector<float> expected = Scene(*single, setup, 13).run(*single);
    for (const int threads : {2, 3, 4}) {
      const auto backend = make_cpu_backend(threads);
      const Scene scene(*backend, setup, 13);
      CHECK(scene.run(*backend) == expected);
      CHECK(scene.run(*backend) == expected);
    }
  }
}

}  // namespace fp8kv
