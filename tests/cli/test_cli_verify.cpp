// The whole output of verify where scales arrive, its exit codes, and runtimes that it refuses.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/program/run_cli.h"
#include "support/program/terminal.h"
#include "support/workplaces/verify_place.h"

namespace fp8kv {
namespace {

using Place = test::VerifyPlace;

constexpr const char* kEverything = R"(runtime       version            scales         how
vLLM          0.7.2 to 0.14      rounded        with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8
                                                rounded by 0.04 % (layer 1)
                                 note           --kv-cache-dtype fp8_e5m2 fails with such a model
vLLM          0.15 and newer     exact, FP8 on  one scale for K and one for V, as F32
                                 note           nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
                                 note           an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100
SGLang        up to 0.5.18       ignored        kv_cache_scheme means nothing to it: an FP8 cache runs with 1
SGLang        0.5.19 and newer   exact          with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs
TGI           branch of PR 2028  ignored        reads kv_scale alone: an FP8 cache runs with 1
TGI           2.4                exact          with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32
                                 note           nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
TGI           3.0 and newer      exact, FP8 on  on CUDA with flashinfer; else with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32
                                 note           nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
transformers  4.45 to 4.46       rounded        with the package compressed-tensors: loads them, and keeps a 16-bit cache
                                                rounded by 0.04 % (layer 1)
transformers  4.49 to 4.53       rounded        with the package compressed-tensors: loads them, and keeps a 16-bit cache
                                                rounded by 0.04 % (layer 1)
                                 note           stops with compressed-tensors 0.20: install 0.9 for 4.49, 0.10 for 4.53
transformers  4.57               rounded        with the package compressed-tensors: loads them, and keeps a 16-bit cache
                                                rounded by 0.04 % (layer 1)
transformers  5 to 5.23          rounded        with the package compressed-tensors: rounds K and V by these scales
                                                rounded by 0.04 % (layer 1)
transformers  5.24 and newer     ignored        compressed-tensors 0.20 finds no caches in it and drops the scales: the model works as before
TensorRT-LLM  engine builder     ignored        reads k_proj.k_scale and v_proj.v_scale alone: an FP8 cache runs with 1
TensorRT-LLM  PyTorch backend    ignored        has no scales for an FP8 cache, only for FP4
From runs of the runtimes' loaders, their sources and issues: see docs/runtimes.md.

Serve it with
  vllm serve out --kv-cache-dtype fp8
  python3 -m sglang.launch_server --model-path out --kv-cache-dtype fp8_e4m3
  text-generation-launcher --model-id out --kv-cache-dtype fp8_e4m3fn
)";

constexpr const char* kPortable = R"(runtime             scales         how
vLLM 0.15+          exact, FP8 on  one scale for K and one for V, as F32
SGLang 0.5.19+      exact          with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs
TGI 3.0+            exact, FP8 on  on CUDA with flashinfer; else with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32
transformers 5.24+  ignored        compressed-tensors 0.20 finds no caches in it and drops the scales: the model works as before
note      vLLM and TGI: nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
note      vLLM: an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100
more      older versions and other runtimes: --all; sources: docs/runtimes.md

Serve it with
  vllm serve out --kv-cache-dtype fp8
  python3 -m sglang.launch_server --model-path out --kv-cache-dtype fp8_e4m3
  text-generation-launcher --model-id out --kv-cache-dtype fp8_e4m3fn
)";

TEST_CASE("cli verify: on a terminal sentences keep to its width, in twenty lines at most") {
  const Place place;
  place.inject("out");
  const auto on_terminal = [&](unsigned short columns, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"verify", "out"});
    test::Terminal terminal(columns);
    const test::CliResult result =
        test::run_cli(more, {.folder = place.temp.path(), .out = terminal.path});
    CHECK(result.exit_code == 0);
    return terminal.text();
  };
  const std::string narrow = on_terminal(80);
  CAPTURE(narrow);
  CHECK(narrow.starts_with(
      "runtime             scales         how\n"
      "vLLM 0.15+          exact, FP8 on  one scale for K and one for V, as F32\n"
      "SGLang 0.5.19+      exact          with --kv-cache-dtype fp8_e4m3: one scale for\n"
      "                                   K and one for V, doubled for FNUZ GPUs\n"));
  CHECK(std::count(narrow.begin(), narrow.end(), '\n') <= 20);
  const std::string whole = on_terminal(80, {"--all"});
  CAPTURE(whole);
  CHECK(whole.starts_with(
      "runtime       version            scales         how\n"
      "vLLM          0.7.2 to 0.14      rounded        with --kv-cache-dtype fp8: one\n"
      "                                                scale for K and one for V,\n"
      "                                                doubled for FNUZ GPUs since 0.8\n"));
  CHECK(on_terminal(200) == kPortable);
  CHECK(on_terminal(0) == kPortable);
  CHECK(on_terminal(200, {"--all"}) == kEverything);
}

TEST_CASE("cli verify: a folder that arrives everywhere it is asked about, row by row") {
  const Place place;
  place.inject("out");
  const test::CliResult result = place.run({"verify", "out"});
  CHECK(result.out == kPortable);
  CHECK(result.err.empty());
  CHECK(result.exit_code == 0);
  CHECK(place.run({"verify", "out", "--all"}).out == kEverything);
}

TEST_CASE("cli verify: what was asked for, and nothing else, decides") {
  const Place place;
  place.inject("out", {"--for", "vllm"});
  const auto exit_code = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"verify", "out"});
    return place.run(more).exit_code;
  };
  CHECK(exit_code({"--runtime", "vllm"}) == 0);
  CHECK(exit_code({"--runtime", "VLLM@0.33.0+cu129"}) == 0);
  CHECK(exit_code({"--runtime", "vllm@all"}) == 0);
  CHECK(exit_code({"--runtime", "sglang@0.5.23.post1"}) == 0);
  CHECK(exit_code({"--runtime", "sglang@0.5.9"}) == 1);
  CHECK(exit_code({"--runtime", "vllm", "--runtime", "sglang@0.5.9"}) == 1);
  CHECK(exit_code({"--runtime", "tgi@pr-2028"}) == 1);
  CHECK(exit_code({"--runtime", "all"}) == 1);
  // Older versions keep a 16-bit cache without the flag.
  CHECK(exit_code({"--runtime", "vllm@0.15", "--kv-cache-dtype", "auto"}) == 0);
  CHECK(exit_code({"--runtime", "vllm@0.14.1", "--kv-cache-dtype", "auto"}) == 1);
  CHECK(exit_code({"--runtime", "vllm@0.14.1", "--kv-cache-dtype", "fp8"}) == 0);
  CHECK(exit_code({"--runtime", "vllm", "--kv-cache-dtype", "fp8_e5m2"}) == 1);
  // MI300 uses FNUZ, which vLLM since 0.15 does not consider for this form.
  CHECK(exit_code({"--runtime", "vllm", "--gpu", "h100"}) == 0);
  CHECK(exit_code({"--runtime", "vllm", "--gpu", "mi300"}) == 1);
  CHECK(exit_code({"--runtime", "vllm@0.14.1", "--gpu", "mi300"}) == 0);
  CHECK(exit_code({"--runtime", "sglang", "--gpu", "mi300"}) == 0);
  CHECK(exit_code({"--runtime", "vllm", "--gpu", "mi355"}) == 0);
}

TEST_CASE("cli verify: a runtime or a version that is not known is refused with those that are") {
  const Place place;
  const auto refusal = [&](const std::string& runtime) {
    const test::CliResult result = place.run({"verify", "model", "--runtime", runtime});
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(
      refusal("vlm") ==
      R"(fp8kv: verify: --runtime: 'vlm' is not a runtime (did you mean 'vllm'?); runtimes are: vllm, sglang, tgi, transformers and tensorrt-llm
help: give NAME, NAME@VERSION, NAME@all or all
)");
  CHECK(
      refusal("vllm@0.5") ==
      R"(fp8kv: verify: --runtime: 'vllm@0.5' is no version that is known of vLLM; known are: 0.7.2 to 0.11, 0.12 to 0.14, 0.15 to 0.16, 0.18 to 0.20, 0.24, 0.25 to 0.26, 0.27 to 0.28, 0.32 and newer
help: see docs/runtimes.md
)");
  CHECK(
      refusal("tgi@main") ==
      R"(fp8kv: verify: --runtime: 'tgi@main' is no version that is known of TGI; known are: pr-2028 (branch of PR 2028), 2.4, 3.0 and newer
help: see docs/runtimes.md
)");
  CHECK(
      refusal("vllm@") ==
      R"(fp8kv: verify: --runtime: 'vllm@' is no version that is known of vLLM; known are: 0.7.2 to 0.11, 0.12 to 0.14, 0.15 to 0.16, 0.18 to 0.20, 0.24, 0.25 to 0.26, 0.27 to 0.28, 0.32 and newer
help: see docs/runtimes.md
)");
}

}  // namespace
}  // namespace fp8kv
