// The losses that verify names, and the remedies.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "core/numbers/tensor.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "scales/rules/runtime_rules.h"
#include "support/models/hybrid_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"
#include "support/workplaces/verify_place.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Place = test::VerifyPlace;

TEST_CASE("cli verify: scales that are lost are named, with what to do") {
  const Place place;
  place.inject("out", {"--for", "tgi"});
  const test::CliResult result =
      place.run({"verify", "out", "--runtime", "vllm@0.10.2", "--runtime", "vllm"});
  CHECK(result.out == R"(runtime  version         scales   how
vLLM     0.10.2          ignored  skips them, as there is no quantization_config: an FP8 cache runs with 1
vLLM     0.32 and newer  fails    takes no scales without a quantization_config: 'There is no module or parameter named'
From runs of the runtimes' loaders, their sources and issues: see docs/runtimes.md.

vLLM 0.10.2:
  ignored in layers 0 and 1: 6 scales, model.layers.0.self_attn.k_scale to model.layers.1.self_attn.v_scale
    skips them, as there is no quantization_config: an FP8 cache runs with 1
  fix: fp8kv inject out --scales out -o out-kv --replace

vLLM 0.32 and newer:
  fails in layers 0 and 1: 6 scales, model.layers.0.self_attn.k_scale to model.layers.1.self_attn.v_scale
    takes no scales without a quantization_config: 'There is no module or parameter named'
  fix: fp8kv inject out --scales out -o out-kv --replace
)");
  CHECK(
      result.err ==
      R"(fp8kv: verify: 'out': not every scale arrives; vLLM 0.10.2: ignored; vLLM 0.32 and newer: fails
help: fp8kv inject out --scales out -o out-kv --replace
)");
  CHECK(result.exit_code == 1);
}

// A pair of scales for each layer of full attention, like the checkpoint in vllm issue 54623.
TEST_CASE("cli verify: a Qwen3.5 arrives in the vLLM that is said to drop it") {
  const Place place;
  const test::Hybrid model = test::qwen3_5();
  test::write_hybrid(place.temp, "qwen", model);
  place.temp.write("q.json", R"({"model_type": "qwen3_5", "kv_cache": {"dtype": "float8_e4m3fn",
    "scaling_factor": {"0": {"2": 0.25}}}})");
  REQUIRE(place.run({"inject", "qwen", "-s", "q.json", "-o", "out", "--for", "vllm"}).exit_code ==
          0);
  const test::CliResult result =
      place.run({"verify", "out", "--runtime", "vllm@0.27.1", "--runtime", "sglang@0.5.9"});
  CHECK(result.out == R"(runtime  version  scales         how
vLLM     0.27.1   exact, FP8 on  one scale for K and one for V, as F32
                  note           0.27.1 is reported to drop the scales of Qwen3.5; its loader, when it was run, took them
                  note           nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
                  note           an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100
SGLang   0.5.9    ignored        kv_cache_scheme means nothing to it: an FP8 cache runs with 1
From runs of the runtimes' loaders, their sources and issues: see docs/runtimes.md.

SGLang 0.5.9:
  ignored in layer 2: 2 scales, model.language_model.layers.2.self_attn.k_scale and model.language_model.layers.2.self_attn.v_scale
    kv_cache_scheme means nothing to it: an FP8 cache runs with 1
  fix: use SGLang 0.5.19 and newer, which loads these scales as they are

Serve it with
  vllm serve out --kv-cache-dtype fp8
)");
  CHECK(result.err == R"(fp8kv: verify: 'out': not every scale arrives; SGLang 0.5.9: ignored
help: use SGLang 0.5.19 and newer, which loads these scales as they are
)");
  CHECK(result.exit_code == 1);
  CHECK(place.run({"verify", "out", "--runtime", "vllm@0.24.0"}).exit_code == 0);
  CHECK(place.run({"verify", "out", "--runtime", "vllm@0.27.1"}).exit_code == 0);
}

TEST_CASE("cli verify: a layer without scales, a half of a pair, and a scale of 0 are named") {
  const Place place;
  const auto verify = [&](const std::vector<std::pair<std::string, float>>& scales) {
    fs::remove_all(place.temp / "broken");
    place.inject("broken", {"--for", "vllm", "--link", "copy"});
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, value] : scales) {
      tensors.push_back(
          {"model.layers." + name,
           ConstTensorView(std::as_bytes(std::span(&value, 1)).data(), DType::f32, Shape{1})});
    }
    place.temp.write("broken/model-kv-scales.safetensors",
                     safetensors_bytes(tensors, {{"format", "pt"}}));
    std::string map;
    for (const auto& [name, value] : scales) {
      map += cat(R"("model.layers.)", name, R"(": "model-kv-scales.safetensors", )");
    }
    const std::string index = test::read_file(place.temp / "broken/model.safetensors.index.json");
    const Json weights = Json::parse(index, "index").at("weight_map");
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights.key(i).find("_scale") != std::string::npos) continue;
      map += cat("\"", weights.key(i), "\": \"", weights.value(i).as_string(), "\", ");
    }
    map.resize(map.size() - 2);
    place.temp.write("broken/model.safetensors.index.json", cat("{\"weight_map\": {", map, "}}"));
    return place.run({"verify", "broken", "--runtime", "vllm"});
  };
  const auto losses = [&](const test::CliResult& result) {
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    const size_t at = result.out.find("docs/runtimes.md.\n") + 18;
    return result.out.substr(at) + result.err;
  };
  CHECK(verify({{"0.self_attn.k_scale", 0.5f},
                {"0.self_attn.v_scale", 0.5f},
                {"1.self_attn.k_scale", 0.5f},
                {"1.self_attn.v_scale", 0.5f}})
            .exit_code == 0);
  CHECK(losses(verify({{"0.self_attn.k_scale", 0.5f}, {"0.self_attn.v_scale", 0.5f}})) == R"(
vLLM 0.32 and newer:
  missing in layer 1
    the layer has no scales: an FP8 cache runs with 1
  fix: fp8kv calibrate broken --data TEXT -o scales.json && fp8kv inject broken --scales scales.json -o broken-kv --replace
fp8kv: verify: the scales cannot be used: 'broken': has KV scales for 1 layer, but none for layer 1
help: a runtime would use 1 there without a word: calibrate again
)");
  CHECK(losses(verify({{"0.self_attn.k_scale", 0.5f},
                       {"0.self_attn.v_scale", 0.5f},
                       {"1.self_attn.k_scale", 0.5f}})) == R"(
vLLM 0.32 and newer:
  misread in layer 1: 1 scale, model.layers.1.self_attn.k_scale
    V, which has no scale, runs with 1
  fix: fp8kv calibrate broken --data TEXT -o scales.json && fp8kv inject broken --scales scales.json -o broken-kv --replace
fp8kv: verify: the scales cannot be used: 'broken': 'model.layers.1.self_attn.k_scale': the scale of V for it is missing
)");
  CHECK(losses(verify({{"0.self_attn.k_scale", 0.5f},
                       {"0.self_attn.v_scale", 0},
                       {"1.self_attn.k_scale", 0.5f},
                       {"1.self_attn.v_scale", 0.5f}})) == R"(
vLLM 0.32 and newer:
  unusable in layer 0: 2 scales, model.layers.0.self_attn.k_scale and model.layers.0.self_attn.v_scale
    model.layers.0.self_attn.v_scale is 0, expected a positive, finite, normal number
  fix: fp8kv calibrate broken --data TEXT -o scales.json && fp8kv inject broken --scales scales.json -o broken-kv --replace
fp8kv: verify: the scales cannot be used: 'broken': 'model.layers.0.self_attn.v_scale': is 0, expected a positive, finite, normal number
help: a scale of 0 or below means 'missing' or undefined to every runtime; calibrate again or repair the source
)");
}

TEST_CASE("cli verify: a model without scales, and a scale file") {
  const Place place;
  const test::CliResult none = place.run({"verify", "model", "--runtime", "vllm"});
  CHECK(none.exit_code == 1);
  CHECK(none.out == R"(runtime  version         scales   how
vLLM     0.32 and newer  missing  there are no scales: an FP8 cache runs with 1
From runs of the runtimes' loaders, their sources and issues: see docs/runtimes.md.

vLLM 0.32 and newer:
  missing in layers 0 and 1
    the layer has no scales: an FP8 cache runs with 1
  fix: fp8kv calibrate model --data TEXT -o scales.json && fp8kv inject model --scales scales.json -o model-kv
)");
  const test::CliResult file =
      place.run({"verify", "scales.json", "--runtime", "sglang", "--runtime", "vllm"});
  CHECK(file.exit_code == 1);
  CHECK(file.out == R"(runtime  version           scales   how
vLLM     0.32 and newer    ignored  its option for scale files is gone since 0.7.0
SGLang   0.5.19 and newer  exact    with --quantization-param-path and --kv-cache-dtype fp8_e4m3: one scale for K and V
                           note     is reported to read the file and then not to use it
                           note     nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
From runs of the runtimes' loaders, their sources and issues: see docs/runtimes.md.

vLLM 0.32 and newer:
  ignored in layers 0 and 1: 2 scales
    its option for scale files is gone since 0.7.0
  fix: fp8kv inject MODEL --scales scales.json -o MODEL-kv

Serve it with
  python3 -m sglang.launch_server --model-path MODEL --quantization-param-path scales.json --kv-cache-dtype fp8_e4m3
)");
  CHECK(
      file.err ==
      R"(warning: 'scales.json': k-before-rope: K was most likely measured before RoPE, which can make a value 1.41 times as large: it then saturates; calibrate: 'fp8kv calibrate' and current tools measure after RoPE
warning: 'scales.json': kv-fused: K and V share one scale, the larger of the two; calibrate to have both: where one is a thousand times smaller, it vanishes
fp8kv: verify: 'scales.json': not every scale arrives; vLLM 0.32 and newer: ignored
help: fp8kv inject MODEL --scales scales.json -o MODEL-kv
)");
  CHECK(place.run({"verify", "scales.json", "--runtime", "sglang"}).exit_code == 0);
  CHECK(place.run({"verify", "nothing"}).exit_code == 3);
}

// Runs each command that verify suggests, and verifies its output.
TEST_CASE("cli verify: every way out that is an injection is one") {
  const test::TempDir temp;
  std::vector<fs::path> goldens;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "tests/golden/dialects")) {
    if (fs::exists(entry.path() / "config.json")) goldens.push_back(entry.path());
  }
  std::sort(goldens.begin(), goldens.end());
  size_t tried = 0;
  for (size_t golden = 0; golden < goldens.size(); golden += test::kSanitized ? 4 : 1) {
    const std::string name = goldens[golden].filename().string();
    fs::copy(goldens[golden], temp / name);
    const test::CliResult result =
        test::run_cli({"verify", name, "--runtime", "all", "--json"}, temp.path());
    if (result.out.empty()) continue;
    const Json runtimes = Json::parse(result.out, "stdout").at("runtimes");
    std::map<std::string, std::vector<std::string>> asked;  // by command: the runtimes it is for
    for (size_t i = 0; i < runtimes.size(); ++i) {
      const Json fixes = runtimes[i].at("fixes");
      for (size_t at = 0; at < fixes.size(); ++at) {
        const std::string fix = fixes[at].as_string();
        if (!fix.starts_with("fp8kv inject ") || fix.find(" SCALES") != fix.npos) continue;
        const RuntimeColumn& column = runtime_columns()[i];
        // An older version of the column may not know the model yet.
        const std::string newest =
            *column.newest ? column.newest : cat(column.first.major, ".99.0");
        const std::string version = *column.key ? column.key : newest;
        std::vector<std::string>& of_fix = asked[fix];
        of_fix.insert(of_fix.end(), {"--runtime", cat(column.runtime, "@", version)});
        ++tried;
      }
    }
    for (const auto& [fix, of_fix] : asked) {
      CAPTURE(fix);
      std::istringstream words(fix.substr(6));
      std::vector<std::string> arguments;
      for (std::string word; words >> word;) arguments.push_back(word);
      arguments.push_back("--force");
      CHECK(test::run_cli(arguments, temp.path()).exit_code == 0);
      std::vector<std::string> verify = {"verify", name + "-kv"};
      verify.insert(verify.end(), of_fix.begin(), of_fix.end());
      const test::CliResult again = test::run_cli(verify, temp.path());
      CAPTURE(again.out);
      CHECK(again.exit_code == 0);
    }
  }
  CHECK(tried > (test::kSanitized ? 25 : 100));
}

}  // namespace
}  // namespace fp8kv
