// The whole JSON and JUnit output of verify.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "scales/rules/runtime_rules.h"
#include "support/workplaces/verify_place.h"

namespace fp8kv {
namespace {

using Place = test::VerifyPlace;

}  // namespace

TEST_CASE("cli verify: JSON has every layer of every runtime, whole") {
  const Place place;
  place.inject("out", {"--for", "vllm-rocm"});
  const test::CliResult result = place.run({"verify", "out", "--runtime", "vllm@0.33", "--gpu",
                                            "mi300", "--json", "--kv-cache-dtype", "fp8"});
  CHECK(result.exit_code == 0);
  CHECK(result.out == R"({
  "schema": "fp8kv.verify/1",
  "path": "out",
  "kv_cache_dtype": "fp8",
  "gpu": "mi300",
  "arrives": true,
  "refusal": null,
  "runtime_facts": [
    "scales",
    "apart",
    "apart_0d",
    "fp8",
    "torch_dtype",
    "llama_baichuan_phi3",
    "single_file",
    "index",
    "llama_mistral"
  ],
  "layers_known": true,
  "form": "k_scale/v_scale",
  "producer": "",
  "producer_version": "",
  "diagnoses": [],
  "runtimes": [
    {
      "runtime": "vLLM",
      "versions": "0.32 and newer",
      "version": "0.33",
      "asked": true,
      "arrives": true,
      "turns_on": false,
      "scales": "rounded by 0.04 % (layer 1), then doubled",
      "result": "loads",
      "rounded": true,
      "sentence": "with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8",
      "source": "run: vLLM 0.7.3 to 0.33",
      "basis": "a run",
      "notes": [],
      "serve": "vllm serve out --kv-cache-dtype fp8",
      "fixes": [],
      "layers": [
        {
          "layer": 0,
          "fate": "rounded",
          "doubled": true,
          "rounding_error": 0.0001627206737708775,
          "why": "with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8",
          "tensors": [
            "model.layers.0.self_attn.k_scale",
            "model.layers.0.self_attn.v_scale"
          ]
        },
        {
          "layer": 1,
          "fate": "rounded",
          "doubled": true,
          "rounding_error": 0.0004043103935011949,
          "why": "with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8",
          "tensors": [
            "model.layers.1.self_attn.k_scale",
            "model.layers.1.self_attn.v_scale"
          ]
        }
      ]
    }
  ]
}
)");
}

TEST_CASE("cli verify: --json has all runtimes where none is asked for, and a source for each") {
  const Place place;
  place.inject("out");
  const Json json = Json::parse(place.run({"verify", "out", "--json"}).out, "stdout");
  CHECK(json.at("arrives").as_bool());
  const Json runtimes = json.at("runtimes");
  REQUIRE(runtimes.size() == runtime_columns().size());
  size_t asked = 0;
  for (size_t i = 0; i < runtimes.size(); ++i) {
    CHECK(!runtimes[i].at("sentence").as_string().empty());
    CHECK(!runtimes[i].at("source").as_string().empty());
    CHECK(runtimes[i].at("layers").size() == 2);
    asked += runtimes[i].at("asked").as_bool() ? 1 : 0;
  }
  CHECK(asked == 3);
}

TEST_CASE("cli verify: JUnit has a case for each runtime that was asked for") {
  const Place place;
  place.inject("out", {"--for", "vllm"});
  const std::vector<std::string> arguments = {"verify",    "out",        "--runtime", "vllm@0.9.2",
                                              "--runtime", "sglang@all", "--junit",   "v.xml"};
  CHECK(place.run(arguments).exit_code == 1);
  CHECK(test::read_file(place.temp / "v.xml") == R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1">
  <testsuite name="fp8kv verify out" tests="3" failures="1">
    <testcase classname="vLLM" name="0.9.2"/>
    <testcase classname="SGLang" name="up to 0.5.18">
      <failure message="ignored: kv_cache_scheme means nothing to it: an FP8 cache runs with 1; fix: fp8kv inject out --scales out -o out-kv --replace --for vllm-rocm; fix: use SGLang 0.5.19 and newer, which loads these scales as they are"/>
    </testcase>
    <testcase classname="SGLang" name="0.5.19 and newer"/>
  </testsuite>
</testsuites>
)");
  CHECK(place.run(arguments).exit_code == 3);  // the file exists already
}

}  // namespace fp8kv
