// The answers of the script that loads scales, and the comparison of its numbers with the files'
// numbers.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "scales/loaded/compare_loaded.h"
#include "scales/loaded/loaded_scales.h"
#include "support/expect_error.h"

using namespace fp8kv;

namespace {

KvScales scales_of(std::vector<LayerScales> layers) {
  KvScales scales;
  scales.layers = std::move(layers);
  return scales;
}

LoadedScales memory_of(std::vector<LoadedAttention> modules) {
  LoadedScales loaded;
  loaded.modules = std::move(modules);
  return loaded;
}

// Compares K of a single layer, with these scales in the file and in memory.
ComparedScale of_k(std::vector<float> file, std::vector<float> memory) {
  return compare_loaded(scales_of({{file, {1}}}), memory_of({{"m", 0, memory, {1}}}))[0];
}

}  // namespace

TEST_CASE("loaded scales: an answer is read, with numbers that JSON does not have") {
  const LoadedScales loaded = parse_loaded_scales(
      R"({"runtime": "vllm", "version": "0.32.0", "python": "3.11.7", "turns_on": true,
          "cache": "fp8_e4m3", "modules": [{"module": "model.layers.4.self_attn.attn", "layer": 4,
                       "k": [0.0044577461667358875], "v": null},
                      {"module": "b", "layer": 5, "k": [Infinity, 2], "v": [NaN]}]})");
  CHECK(loaded.runtime == "vllm");
  CHECK(loaded.version == "0.32.0");
  CHECK(loaded.python_version == "3.11.7");
  CHECK(loaded.turns_on == true);
  CHECK(loaded.cache == "fp8_e4m3");
  CHECK(loaded.failure.empty());
  REQUIRE(loaded.modules.size() == 2);
  CHECK(loaded.modules[0].layer == 4);
  CHECK(loaded.modules[0].k == std::vector<float>{0x1.242492p-8f});
  CHECK(loaded.modules[0].v.empty());
  CHECK(std::isinf(loaded.modules[1].k[0]));
  CHECK(std::isnan(loaded.modules[1].v[0]));
}

TEST_CASE("loaded scales: what a Python lacks is an error with a way out") {
  const auto refusal = [](const char* answer) { return [=] { parse_loaded_scales(answer); }; };
  const auto none = refusal(R"({"refused": "absent", "found": [], "wanted": ""})");
  CHECK(test::error_of(none) == "has none of vLLM, SGLang and transformers");
  CHECK(test::help_of(none) == "give --with the Python of the environment that serves the model");
  const auto other =
      refusal(R"({"refused": "absent", "found": ["transformers"], "wanted": "vllm"})");
  CHECK(test::error_of(other) == "has no vLLM, but transformers");
  const auto both = refusal(R"({"refused": "several", "found": ["vllm", "sglang"]})");
  CHECK(test::error_of(both, ErrorKind::usage) == "has vLLM and SGLang");
  CHECK(test::help_of(both) == "choose with --runtime, as in --runtime vllm");
  const auto memory = refusal(R"({"refused": "memory"})");
  CHECK(test::error_of(memory, ErrorKind::resource) ==
        "ran out of memory while the runtime loaded the folder");
}

TEST_CASE("loaded scales: memory is compared with the file, bit for bit") {
  const float scale = 0x1.242438p-8f, next = std::nextafterf(scale, 1);
  CHECK(of_k({scale}, {scale}).how == LoadedAs::equal);
  CHECK(of_k({1}, {1}).how == LoadedAs::equal);
  CHECK(of_k({scale}, {1}).how == LoadedAs::one);
  CHECK(of_k({scale}, {2 * scale}).how == LoadedAs::doubled);
  CHECK(of_k({scale}, {}).how == LoadedAs::missing);
  CHECK(of_k({scale}, {next}).how == LoadedAs::differs);
  CHECK(of_k({scale}, {std::numeric_limits<float>::quiet_NaN()}).how == LoadedAs::differs);
}

TEST_CASE("loaded scales: one of the model's dtype is rounded, with how much") {
  const ComparedScale bf16 = of_k({1.00390625f * 3}, {3.015625f});  // half way: 3.01171875
  CHECK(bf16.how == LoadedAs::rounded);
  CHECK(bf16.error == doctest::Approx(3.015625 / 3.01171875 - 1).epsilon(1e-12));
  CHECK(of_k({0.1f}, {0x1.998p-4f}).how == LoadedAs::rounded);  // float16
  CHECK(of_k({2e-8f}, {0}).how == LoadedAs::differs);           // becomes 0 in float16
  CHECK(of_k({2e-7f}, {0x1.8p-23f}).how == LoadedAs::differs);  // subnormal in float16, 11 % off
}

TEST_CASE("loaded scales: scales of heads arrive each, or as one") {
  CHECK(of_k({2, 3}, {2, 3}).how == LoadedAs::equal);
  CHECK(of_k({2, 3}, {3, 2}).how == LoadedAs::differs);
  CHECK(of_k({2, 3}, {3}).how == LoadedAs::largest);
  CHECK(of_k({2, 3}, {2}).how == LoadedAs::differs);
  CHECK(of_k({2, 3}, {1, 1}).how == LoadedAs::one);
  for (const LoadedAs how :
       {LoadedAs::largest, LoadedAs::one, LoadedAs::missing, LoadedAs::differs}) {
    CHECK_FALSE(arrived(how));
  }
}

TEST_CASE("loaded scales: Q is compared where the files have it") {
  const auto compared =
      compare_loaded(scales_of({{{2}, {3}, {5}}, {{2}, {3}, {5}}}),
                     memory_of({{"a.0", 0, {2}, {3}, {5}}, {"a.1", 1, {2}, {3}}}));
  REQUIRE(compared.size() == 6);
  CHECK(compared[2].of == 'Q');
  CHECK(compared[2].how == LoadedAs::equal);
  CHECK(compared[5].how == LoadedAs::missing);
  CHECK(compare_loaded(scales_of({{{2}, {3}}}), memory_of({{"a.0", 0, {2}, {3}, {1}}})).size() ==
        2);
}

TEST_CASE("loaded scales: layers are told apart, and the worst module of a layer counts") {
  const auto compared =
      compare_loaded(scales_of({{{2}, {3}}, {}, {{4}, {5}}}),
                     memory_of({{"a.0", 0, {2}, {3}}, {"b.0", 0, {2}, {7}}, {"a.2", 2, {4}, {}}}));
  REQUIRE(compared.size() == 4);
  CHECK(compared[0].how == LoadedAs::equal);
  CHECK(compared[1].how == LoadedAs::differs);
  CHECK(compared[1].memory == std::vector<float>{7});
  CHECK(compared[2].layer == 2);
  CHECK(compared[2].of == 'K');
  CHECK(compared[2].how == LoadedAs::equal);
  CHECK(compared[3].of == 'V');
  CHECK(compared[3].how == LoadedAs::missing);
}
