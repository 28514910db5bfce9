// The whole output of inject and diff.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// A tiny model of two layers, and a scale file for it.
struct Place {
  Place() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config(), {.n_shards = 2});
    temp.write("scales.json", file("0.5", "0.0009765625"));
  }
  static std::string file(const std::string& first, const std::string& second) {
    return R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", "scaling_factor": )"
           R"({"0": {"0": )" +
           first + R"(, "1": )" + second + "}}}}";
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path()});
  }

  test::TempDir temp;
};

constexpr const char* kVllmVerdicts = R"(runtime       version            result          how
vLLM          0.7.2 to 0.14      loads, rounded  with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8
                                 note            --kv-cache-dtype fp8_e5m2 fails with such a model
vLLM          0.15 and newer     turns FP8 on    one scale for K and one for V, as F32
                                 note            nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
                                 note            an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100
SGLang        up to 0.5.18       ignores         kv_cache_scheme means nothing to it: an FP8 cache runs with 1
SGLang        0.5.19 and newer   loads           with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs
TGI           branch of PR 2028  ignores         reads kv_scale alone: an FP8 cache runs with 1
TGI           2.4                loads           with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32
                                 note            nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
TGI           3.0 and newer      turns FP8 on    on CUDA with flashinfer; else with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32
                                 note            nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
transformers  4.45 to 4.46       loads, rounded  with the package compressed-tensors: loads them, and keeps a 16-bit cache
transformers  4.49 to 4.53       loads, rounded  with the package compressed-tensors: loads them, and keeps a 16-bit cache
                                 note            stops with compressed-tensors 0.20: install 0.9 for 4.49, 0.10 for 4.53
transformers  4.57               loads, rounded  with the package compressed-tensors: loads them, and keeps a 16-bit cache
transformers  5 to 5.23          loads, rounded  with the package compressed-tensors: rounds K and V by these scales
transformers  5.24 and newer     ignores         compressed-tensors 0.20 finds no caches in it and drops the scales: the model works as before
TensorRT-LLM  engine builder     ignores         reads k_proj.k_scale and v_proj.v_scale alone: an FP8 cache runs with 1
TensorRT-LLM  PyTorch backend    ignores         has no scales for an FP8 cache, only for FP4
From runs of the runtimes' loaders, their sources and issues: see docs/runtimes.md.
)";

constexpr const char* kFiles =
    R"(files     config.json, model-kv-scales.safetensors and model.safetensors.index.json written; 2 files copied

runtime             scales        how
vLLM 0.15+          turns FP8 on  one scale for K and one for V, as F32
SGLang 0.5.19+      loads         with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs
TGI 3.0+            turns FP8 on  on CUDA with flashinfer; else with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32
transformers 5.24+  ignores       compressed-tensors 0.20 finds no caches in it and drops the scales: the model works as before
note      vLLM and TGI: nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240
note      vLLM: an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100
more      older versions and other runtimes: --all; sources: docs/runtimes.md
)";

constexpr const char* kServe = R"(
Serve it with
  vllm serve out --kv-cache-dtype fp8
  python3 -m sglang.launch_server --model-path out --kv-cache-dtype fp8_e4m3
  text-generation-launcher --model-id out --kv-cache-dtype fp8_e4m3fn
)";

TEST_CASE("cli: inject says what each runtime will do") {
  const Place place;
  const test::CliResult made = place.run(
      {"inject", "model", "-s", "scales.json", "-o", "out", "--for", "vllm", "--link", "copy"});
  CHECK(made.exit_code == 0);
  CHECK(made.out == std::string(kFiles) + kServe);
  CHECK(made.err == "wrote 82.0 KiB and made 'out'\n");
  const test::CliResult whole = place.run({"inject", "model", "-s", "scales.json", "-o", "out",
                                           "--for", "vllm", "--link", "copy", "--all", "--force"});
  CHECK(whole.out == std::string("file                               bytes  how\n"
                                 "config.json                          947  written\n"
                                 "model-00001-of-00002.safetensors  40,200  copied\n"
                                 "model-00002-of-00002.safetensors  40,392  copied\n"
                                 "model-kv-scales.safetensors          400  written\n"
                                 "model.safetensors.index.json       2,010  written\n\n") +
                         kVllmVerdicts + kServe);
}

TEST_CASE("cli: diff shows each layer, names the pattern and exits with 1") {
  const Place place;
  place.temp.write("twice.json", Place::file("1.0", "0.001953125"));
  const test::CliResult result = place.run({"diff", "scales.json", "twice.json"});
  CHECK(result.exit_code == 1);
  CHECK(result.out ==
        "layer        K of A       K of B  B/A        V of A       V of B  B/A\n"
        "    0           0.5            1    2           0.5            1    2\n"
        "    1  0.0009765625  0.001953125    2  0.0009765625  0.001953125    2\n"
        "\n"
        "2 of 2 layers differ; farthest is layer 0: B/A is 2 in K and 2 in V\n"
        "doubled: B is exactly twice A; are those of B for FNUZ GPUs (MI300)? On disk scales are "
        "for E4M3FN\n");
  CHECK(result.err.ends_with(
      "fp8kv: diff: 'scales.json' and 'twice.json' differ in 2 of 2 layers\n"));
}

TEST_CASE("cli: diff of a checkpoint with its scale file finds nothing and exits with 0") {
  const Place place;
  place.run({"inject", "model", "-s", "scales.json", "-o", "out"});
  const test::CliResult result = place.run({"diff", "scales.json", "out", "-q"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out ==
        "layer        K of A        K of B  B/A        V of A        V of B  B/A\n"
        "    0           0.5           0.5    =           0.5           0.5    =\n"
        "    1  0.0009765625  0.0009765625    =  0.0009765625  0.0009765625    =\n"
        "\n"
        "no layer of 2 differs\n");
}

TEST_CASE("cli: diff takes a tolerance, and says so") {
  const Place place;
  place.temp.write("near.json", Place::file("0.505", "0.0009765625"));
  const test::CliResult near =
      place.run({"diff", "scales.json", "near.json", "--tolerance", "0.02"});
  CHECK(near.exit_code == 0);
  CHECK(near.out.ends_with("\nno layer of 2 differs by more than 0.02\n"));
  const test::CliResult json =
      place.run({"diff", "scales.json", "near.json", "--tolerance", "0.001", "--json"});
  CHECK(json.exit_code == 1);
  const Json parsed = Json::parse(json.out, "stdout");
  CHECK_FALSE(parsed.at("same").as_bool());
  CHECK(parsed.at("differing_layers").as_int() == 1);
  CHECK(parsed.at("rows")[0].at("differs").as_bool());
  CHECK_FALSE(parsed.at("rows")[1].at("differs").as_bool());
  CHECK(parsed.at("rows")[0].at("k").at("b").as_double() == static_cast<double>(0.505f));
}

TEST_CASE("cli: diff of models with unlike layers differs, in JSON too") {
  const Place place;
  place.temp.write("more.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", )"
                                R"("scaling_factor": {"0": {"0": 0.5}}}})");
  const test::CliResult result = place.run({"diff", "scales.json", "more.json", "--json", "-q"});
  CHECK(result.exit_code == 1);
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("schema").as_string() == "fp8kv.diff/1");
  CHECK_FALSE(json.at("same").as_bool());
  CHECK_FALSE(json.at("comparable").as_bool());
  CHECK(json.at("reason").as_string() == "A has scales for 2 layers, B for 1");
  CHECK(result.err ==
        "fp8kv: diff: A has scales for 2 layers, B for 1\nhelp: they are not of the same model\n");
}

TEST_CASE("cli: what diff and extract find has the same keys in JSON") {
  const Place place;
  place.temp.write("twice.json", Place::file("1.0", "0.001953125"));
  const test::CliResult diff = place.run({"diff", "scales.json", "twice.json", "--json"});
  const Json found = Json::parse(diff.out, "stdout");
  CHECK(found.at("comparable").as_bool());
  CHECK(found.at("findings")[0].at("id").as_string() == "doubled");
  CHECK(found.at("of_a").at("diagnoses")[0].at("id").as_string() == "k-before-rope");
}

TEST_CASE("cli: inject writes a scale file to stdout alone, and a folder never") {
  const Place place;
  const test::CliResult file =
      place.run({"inject", "model", "-s", "scales.json", "--for", "json", "-o", "-"});
  CHECK(file.exit_code == 0);
  CHECK(Json::parse(file.out, "stdout").at("fp8kv").at("schema").as_string() == "fp8kv.scales/1");
  const test::CliResult folder = place.run({"inject", "model", "-s", "scales.json", "-o", "-"});
  CHECK(folder.exit_code == 2);
  CHECK(folder.err ==
        "fp8kv: inject: --out: '-' is no folder: only the scale file of --for json can go to "
        "stdout\nhelp: name a folder to make\n");
}

TEST_CASE("cli: inject refuses flags that mean nothing for a scale file") {
  const Place place;
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"inject", "model", "-s", "scales.json",
                                          "--for",  "json",  "-o", "new.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::CliResult result = place.run(arguments);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(refusal({"--replace"}) ==
        "fp8kv: inject: --replace is for model folders, and --for json writes a scale file\n"
        "help: leave out --replace\n");
  CHECK(refusal({"--link", "hard"}) ==
        "fp8kv: inject: --link is for model folders, and --for json writes a scale file\n"
        "help: leave out --link\n");
}

}  // namespace
}  // namespace fp8kv
