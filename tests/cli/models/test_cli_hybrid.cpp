// Every command on a model where only layers 1 and 3 of 5 write a KV cache.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/hybrid_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

// A scale file like calibrate's: layer 1 needs its scale, V of layer 3 is too wide.
constexpr const char* kScaleFile = R"({
  "model_type": "nemotron_h",
  "kv_cache": {"dtype": "float8_e4m3fn", "scaling_factor": {"0": {"1": 2, "3": 128}}},
  "fp8kv": {
    "schema": "fp8kv.scales/2", "source": "fp8kv calibrate", "format": "float8_e4m3fn",
    "granularity": "tensor", "observation": "post_rope", "compute_dtype": "bfloat16",
    "model": {"n_layers": 5, "n_kv_heads": 2},
    "counted": {"documents": 3, "windows": 4, "tokens": 2000,
                "data": [{"name": "FILE", "bytes": 9, "sha256": "FILE"}]},
    "k_scale": [[], [2], [], [0.0078125], []], "v_scale": [[], [0.0078125], [], [128], []],
    "amax": {"k": [[], [896, 3], [], [3.5, 1], []], "v": [[], [3.5, 1], [], [57344, 1], []],
             "q": [[], [1, 1], [], [1, 1], []]},
    "octaves": {"k": [[], [0, 1, 90, 5, 0, 0, 0, 0, 0, 0, 5], [], [0, 0, 50, 50], []],
                "v": [[], [0, 0, 50, 50], [], [0, -8, 90, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 0, 0, 5], []]}
  }
})";

// A scale file in vLLM's schema, which SGLang reads too.
constexpr const char* kPlainFile = R"({
  "model_type": "nemotron_h",
  "kv_cache": {
    "dtype": "float8_e4m3fn",
    "scaling_factor": {
      "0": {
        "1": 2,
        "3": 128
      }
    }
  }
}
)";

constexpr const char* kScalesTable =
    R"(layer    K scale    V scale
    0   no cache
    1          2  0.0078125
    2   no cache
    3  0.0078125        128
    4   no cache
)";

constexpr const char* kMargins =
    R"(layer      amax  saturation  underflow  flushed  at 1.0: saturation  underflow  flushed  verdict
    0         -           -          -        -                   -          -        -  no cache
    1  K    896       +0.00       +6.0    0.0 %               -1.00       +7.0    0.0 %  needs its scale: K saturates at 1.0
       V    3.5       +0.00      +13.0    0.0 %               +7.00       +6.0    0.0 %
    2         -           -          -        -                   -          -        -  no cache
    3  K    3.5       +0.00      +13.0    0.0 %               +7.00       +6.0    0.0 %  keep in 16 bit: V has too wide a range
       V  57344       +0.00       -9.0   95.0 %               -7.00       -2.0    0.0 %
    4         -           -          -        -                   -          -        -  no cache
Octaves between amax and the largest code, and between the median and full precision;
flushed: share of values that become zero. First with the scale in force, then with 1.0.

verdict   layer 3 should stay in 16 bit; layer 1 needs its scale
scales    lose values that were seen in layer 3: calibrate again
on FNUZ   the same (scales doubled)
policy    amax
)";

constexpr const char* kMergedSummary =
    R"(made      scales of 2 layers, one per tensor, from 4,000 tokens in 8 windows
verdict   layer 3 should stay in 16 bit; layer 1 needs its scale
scales    lose values that were seen in layer 3: calibrate again
on FNUZ   the same (scales doubled)
policy    amax
evidence  4,000 tokens in 8 windows of 6 documents; K after RoPE, computed in bfloat16
for vLLM  --kv-cache-dtype-skip-layers 3
look at   layer 3: V up to 57344, 7.00 octaves above the largest code
          layer 1: K up to 896, 1.00 octaves above the largest code
amax of K ·█·▁·  3.5 to 896
amax of V ·▁·█·  3.5 to 5.73e+04
loss      not measured here: fp8kv eval MODEL --data TEXT --scales m.json
next      fp8kv inject MODEL --scales m.json -o MODEL-fp8
)";

std::string scale_file(const std::string& data) {
  std::string text = kScaleFile;
  for (size_t at; (at = text.find("FILE")) != text.npos;) text.replace(at, 4, data);
  return text;
}

struct Place {
  Place() {
    test::write_hybrid(folder, "model", test::nemotron_h());
    folder.write("s.json", scale_file("a"));
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, folder.path());
  }
  void inject(const std::string& target, const std::string& out) const {
    const test::CliResult result =
        run({"inject", "model", "--scales", "s.json", "--for", target, "--out", out, "-q"});
    REQUIRE(result.exit_code == 0);
    CHECK(result.err == "");
  }

  test::TempDir folder;
};

TEST_CASE("cli hybrid: inspect has a row for every layer, and judges those with a cache") {
  const Place place;
  const test::CliResult result = place.run({"inspect", "s.json"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out ==
        cat("made      scales of 2 layers, one per tensor, from 2,000 tokens in 4 windows\n"
            "at 1.0    would not have done: 1 of 2 layers needs its scale and 1 of 2 layers should "
            "stay in 16 bit\n"
            "next      fp8kv inject MODEL --scales s.json -o MODEL-fp8\n\n"
            "scale file        s.json\n"
            "made by           fp8kv calibrate\n"
            "for               float8_e4m3fn, one scale per tensor\n"
            "model type        nemotron_h\n"
            "evidence          2,000 tokens in 4 windows of 3 documents\n\n",
            kScalesTable, "\n", kMargins,
            "evidence  2,000 tokens in 4 windows of 3 documents; K after RoPE, computed in "
            "bfloat16\n"
            "for vLLM  --kv-cache-dtype-skip-layers 3\n"));
  const Json json = Json::parse(place.run({"inspect", "--json", "s.json"}).out, "stdout");
  const Json layers = json.at("scales").at("layers");
  REQUIRE(layers.size() == 5);
  CHECK(layers[2].brief() == R"({"k": [], "v": []})");
  CHECK(layers[3].brief() == R"({"k": [0.0078125], "v": [128]})");
  const Json verdicts = json.at("certificate").at("formats")[0].at("layers");
  REQUIRE(verdicts.size() == 5);
  CHECK(verdicts[2].brief() == R"({"layer": 2, "verdict": "no cache"})");
}

TEST_CASE("cli hybrid: inject writes what extract reads, and that goes in again as it is") {
  const Place place;
  place.inject("vllm", "one");
  const test::CliResult list = place.run({"extract", "--list", "one"});
  CHECK(list.err == "");
  CHECK(list.out ==
        "tensor                           dialect             of  dtype  shape  value\n"
        "backbone.layers.1.mixer.k_scale  compressed-tensors  K   F32    [1]    2\n"
        "backbone.layers.1.mixer.v_scale  compressed-tensors  V   F32    [1]    0.0078125\n"
        "backbone.layers.3.mixer.k_scale  compressed-tensors  K   F32    [1]    0.0078125\n"
        "backbone.layers.3.mixer.v_scale  compressed-tensors  V   F32    [1]    128\n");
  const test::CliResult extracted = place.run({"extract", "one", "-o", "one.json", "--json"});
  CHECK(extracted.err ==
        "found scales of 2 layers (no KV cache in the other 3) as 'compressed-tensors' for "
        "float8_e4m3fn\nwrote 'one.json'\n");
  const Json summary = Json::parse(extracted.out, "stdout");
  CHECK(summary.at("layers").as_int() == 5);
  CHECK(summary.at("cache_layers").as_int() == 2);
  const test::CliResult same = place.run({"diff", "s.json", "one.json"});
  CHECK(same.exit_code == 0);
  CHECK(same.out ==
        "layer     K of A     K of B  B/A     V of A     V of B  B/A\n"
        "    0   no cache\n"
        "    1          2          2    =  0.0078125  0.0078125    =\n"
        "    2   no cache\n"
        "    3  0.0078125  0.0078125    =        128        128    =\n"
        "    4   no cache\n"
        "\n"
        "no layer of 2 with a KV cache differs\n");
  const auto again =
      place.run({"inject", "model", "--scales", "one.json", "--for", "vllm", "--out", "two", "-q"});
  CHECK(again.exit_code == 0);
  place.run({"extract", "two", "-o", "two.json", "-q"});
  CHECK(test::read_file(place.folder / "two.json") == test::read_file(place.folder / "one.json"));
}

TEST_CASE("cli hybrid: vLLM's schema names the layers with a cache, and is read as that") {
  const Place place;
  place.inject("tgi", "out");
  const test::CliResult plain = place.run({"extract", "out", "--to", "vllm-json", "-q"});
  CHECK(plain.out == kPlainFile);
  place.folder.write("plain.json", plain.out);
  const test::CliResult inspected = place.run({"inspect", "plain.json"});
  CHECK(inspected.exit_code == 0);
  CHECK(inspected.out ==
        "scale file        plain.json\n"
        "made by           vllm-json\n"
        "for               float8_e4m3fn, one scale per tensor\n"
        "model type        nemotron_h\n"
        "\n"
        "layer   K scale  V scale\n"
        "    0  no cache\n"
        "    1         2        2\n"
        "    2  no cache\n"
        "    3       128      128\n"
        "\n"
        "k-before-rope: K was most likely measured before RoPE, which can make a value 1.41 times "
        "as large: it then saturates; calibrate: 'fp8kv calibrate' and current tools measure after "
        "RoPE\n"
        "kv-fused: K and V share one scale, the larger of the two; calibrate to have both: where "
        "one is a thousand times smaller, it vanishes\n"
        "unnamed-layers: no scale is given for layers 0 and 2, which is right where the model "
        "writes no KV cache there; harmless: 'fp8kv inject' checks it against the model\n");
  // The model has one more layer than the file.
  const test::CliResult whole =
      place.run({"inject", "model", "--scales", "plain.json", "--for", "json", "-o", "w.json"});
  CHECK(whole.exit_code == 0);
  CHECK(Json::read(place.folder / "w.json").at("fp8kv").at("k_scale").brief() ==
        "[[], [2], [], [128], []]");
}

TEST_CASE("cli hybrid: scales for other layers than the model's are refused") {
  const Place place;
  place.folder.write("bad.json", R"({"model_type": "nemotron_h", "kv_cache": {
      "dtype": "float8_e4m3fn", "scaling_factor": {"0": {"1": 2, "2": 128}}}})");
  const test::CliResult result =
      place.run({"inject", "model", "--scales", "bad.json", "--out", "out"});
  CHECK(result.exit_code == 3);
  CHECK(result.out == "");
  CHECK(result.err ==
        "fp8kv: inject: 'bad.json': has no scales for layer 3, where the model writes a KV cache\n"
        "help: use scales that 'fp8kv calibrate' made from this very model\n");
  const test::CliResult compared = place.run({"diff", "s.json", "bad.json", "-q"});
  CHECK(compared.exit_code == 1);
  CHECK(compared.err ==
        "fp8kv: diff: A has scales for layer 3, where B has no KV cache\n"
        "help: they are not of the same model\n");
}

TEST_CASE("cli hybrid: a config with Infinity and without a number of layers is like another") {
  const Place place;
  test::write_hybrid(place.folder, "listed", test::nemotron_h_listed());
  const test::CliResult planned = place.run({"plan", "listed", "--context", "100"});
  CHECK(planned.err == "");
  CHECK(planned.out == place.run({"plan", "model", "--context", "100"}).out);
  const auto injected =
      place.run({"inject", "listed", "--scales", "s.json", "--for", "vllm", "--out", "out", "-q"});
  CHECK(injected.exit_code == 0);
  CHECK(injected.err == "");
  const std::string config = test::read_file(place.folder / "out/config.json");
  CHECK(json_without_member(json_without_member(config, "quantization_config"),
                            "kv_cache_torch_dtype") == test::nemotron_h_listed().config);
  const test::CliResult extracted = place.run({"extract", "out", "-o", "again.json", "-q"});
  CHECK(extracted.exit_code == 0);
  CHECK(extracted.err == "");
  CHECK(place.run({"diff", "s.json", "again.json"}).exit_code == 0);
  const test::CliResult inspected = place.run({"inspect", "out", "--json"});
  CHECK(inspected.exit_code == 0);
  CHECK_NOTHROW(Json::parse(inspected.out, "stdout"));
}

TEST_CASE("cli hybrid: merge adds up the layers with a cache") {
  const Place place;
  place.folder.write("b.json", scale_file("b"));
  const test::CliResult result = place.run({"merge", "s.json", "b.json", "-o", "m.json"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "wrote 'm.json': scales of 2 layers from 4,000 tokens in 8 windows\n");
  CHECK(result.out == kMergedSummary);
  const test::CliResult table =
      place.run({"merge", "s.json", "b.json", "-o", "m.json", "--force", "--table"});
  CHECK(table.out.find(kMargins) != table.out.npos);
  const Json merged = Json::read(place.folder / "m.json").at("fp8kv");
  CHECK(merged.at("schema").as_string() == "fp8kv.scales/2");
  CHECK(merged.at("k_scale").brief() == "[[], [2], [], [0.0078125], []]");
}

TEST_CASE("cli hybrid: plan counts the layers with a cache") {
  const Place place;
  const test::CliResult result = place.run({"plan", "model", "--context", "100"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out ==
        "cache       2 layers; 2 KV heads of 2\n"
        "states      1 layer; their size is not known, and not counted\n"
        "weights     352 B\n"
        "sequences   of 100 tokens; 1 in a decode step\n"
        "\n"
        "KV cache  bytes a token  a sequence  read in a step   gain\n"
        "bfloat16             32    3.12 KiB        3.47 KiB  1.00x\n"
        "fp8_e4m3             16    1.56 KiB        1.91 KiB  1.82x\n"
        "\n"
        "gain: bytes read in a decode step with a bfloat16 cache over those with this one; what a "
        "step that\n"
        "is bound by memory can gain in speed.\n");
}

TEST_CASE("cli hybrid: a model that computes takes no scales with a layer left out") {
  const Place place;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  const std::string demo = (datasets / "demo").string();
  place.folder.write("gap.json", R"({"model_type": "llama", "kv_cache": {
      "dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 1, "2": 1, "3": 1, "4": 1, "5": 1}}}})");
  for (std::vector<std::string> command :
       {std::vector<std::string>{"run", demo, "--prompt", "a"},
        {"eval", demo, "--data", (datasets / "calibration.txt").string()}}) {
    command.insert(command.end(), {"--scales", "gap.json", "-q"});
    const test::CliResult result = place.run(command);
    CHECK(result.exit_code == 3);
    CHECK(result.out == "");
    CHECK(result.err == cat("fp8kv: ", command[0],
                            ": 'gap.json': has no scales for layer 1, where "
                            "the model writes a KV cache\n"
                            "help: use scales that 'fp8kv calibrate' made from this very model\n"));
  }
}

TEST_CASE("cli hybrid: a model that computes has no layer without a cache") {
  const Place place;
  const std::filesystem::path demo = test::source_dir() / "datasets" / "demo";
  std::filesystem::copy(demo, place.folder / "demo");
  place.folder.write("demo/config.json", json_with_member(test::read_file(demo / "config.json"),
                                                          "full_attention_interval", "2"));
  place.folder.write("odd.json", R"({"model_type": "llama", "kv_cache": {
      "dtype": "float8_e4m3fn", "scaling_factor": {"0": {"1": 1, "3": 1, "5": 1}}}})");
  const test::CliResult injected =
      place.run({"inject", "demo", "--scales", "odd.json", "--out", "out", "-q"});
  CHECK(injected.exit_code == 0);
  const test::CliResult result = place.run({"run", "out", "--prompt", "a", "-q"});
  CHECK(result.exit_code == 3);
  CHECK(result.out == "");
  CHECK(result.err ==
        "fp8kv: run: 'out/config.json': full_attention_interval: is 2, which makes the mixing of "
        "layer 0 'recurrent', expected 'full' in LlamaForCausalLM\n"
        "help: plan, inspect, extract and inject take such a model\n");
}

}  // namespace
}  // namespace fp8kv
