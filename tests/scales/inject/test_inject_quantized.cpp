#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "scales/write/inject.h"
#include "scales/write/scale_patch.h"
#include "support/expect_error.h"
#include "support/workplaces/inject_place.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using test::block_of;
using test::kGroups;
using test::one_layer;
using test::one_scale;

constexpr const char* kFp8Block =
    R"({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]})";
constexpr const char* kModelOptBlock =
    R"({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]})";

}  // namespace

TEST_CASE("targets: a model of AutoFP8 is extended in AutoFP8's form") {
  for (const std::string target : {"tgi", "vllm", "vllm-rocm", "sglang"}) {
    CAPTURE(target);
    const test::InjectPlace place(one_layer());
    place.add_to_config("quantization_config", kFp8Block);
    place.inject("model", one_scale(), "out", target);
    CHECK(
        block_of(place, "out") ==
        R"({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"], )"
        R"("kv_cache_scheme": "static"})");
    CHECK(place.scale_tensors("out") ==
          Strings{"model.layers.0.self_attn.k_scale", "model.layers.0.self_attn.v_scale"});
  }
}

TEST_CASE("targets: a model of compressed-tensors gets a kv_cache_scheme, per head for vLLM") {
  for (const char* key : {"quantization_config", "compression_config"}) {
    CAPTURE(key);
    const test::InjectPlace place(one_layer());
    place.add_to_config(key, kGroups);
    KvScales scales;
    scales.layers = {{{0.5f, 0.25f}, {1, 2}}};
    place.inject("model", scales, "out", "vllm");
    const Json block = place.config_of("out").at(key);
    CHECK(block.at("config_groups").has("group_0"));
    CHECK(block.at("kv_cache_scheme").at("strategy").as_string() == "attn_head");
    CHECK(place.scales_in("out").layers == scales.layers);
    place.inject("model", scales, "out", "tgi");
    CHECK(place.config_of("out").at(key).at("kv_cache_scheme").at("strategy").as_string() ==
          "tensor");
  }
}

TEST_CASE(
    "targets: what the config says of the scales that were there is not said of those put in") {
  for (const char* said : {R"("version": "0.14.0")", R"("provider": "auto-round")"}) {
    CAPTURE(said);
    const test::InjectPlace place(one_layer());
    std::string block = kGroups;
    block.insert(block.find('{') + 1, cat(said, ", "));
    place.add_to_config("quantization_config", block);
    KvScales scales = one_scale();
    scales.provenance.observation = Observation::after_rope;
    place.inject("model", scales, "out", "vllm");
    const FoundScales found = survey_scales(place.folder / "out");
    CHECK(found.scales.provenance.producer == "fp8kv");
    CHECK(found.scales.provenance.observer == "");
    for (const Diagnosis& diagnosis : found.diagnoses) CHECK(diagnosis.id != "last-batch-observer");
  }
}

TEST_CASE("targets: kv_scale is never written beside a quantization_config, and that is said") {
  const test::InjectPlace place(one_layer(), {.n_shards = 2});
  place.add_to_config("quantization_config", kGroups);
  CHECK(place.inject("model", one_scale(), "out", "tgi").notes ==
        Strings{"kv_scale is left out: beside the config of 'compressed-tensors' vLLM would take "
                "it for K's"});
  CHECK(place.scale_tensors("out") ==
        Strings{"model.layers.0.self_attn.k_scale", "model.layers.0.self_attn.v_scale"});
}

TEST_CASE("targets: a model of ModelOpt is extended in both its files, under its own names") {
  const test::InjectPlace place(one_layer());
  place.add_to_config("quantization_config", kModelOptBlock);
  place.folder.write(
      "model/hf_quant_config.json",
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}})");
  place.inject("model", one_scale(), "out", "vllm");
  CHECK(block_of(place, "out") ==
        R"({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"], )"
        R"("kv_cache_scheme": {"dynamic": false, "num_bits": 8, "type": "float"}})");
  const Json file = Json::read(place.folder / "out/hf_quant_config.json");
  CHECK(file.at("quantization").at("kv_cache_quant_algo").as_string() == "FP8");
  CHECK(file.at("producer").at("name").as_string() == "modelopt");
  CHECK(place.scale_tensors("out") == Strings{"model.layers.0.self_attn.k_proj.k_scale",
                                              "model.layers.0.self_attn.v_proj.v_scale"});
}

TEST_CASE("targets: a model of an early ModelOpt has its quantisation in a file of its own") {
  const test::InjectPlace place(one_layer());
  place.folder.write("model/hf_quant_config.json",
                     R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": null}})");
  place.inject("model", one_scale(), "out", "sglang");
  CHECK(block_of(place, "out").empty());
  const Json file = Json::read(place.folder / "out/hf_quant_config.json");
  CHECK(file.at("quantization").at("kv_cache_quant_algo").as_string() == "FP8");
}

TEST_CASE("targets: ModelOpt's own file beside a block by another tool is refused") {
  for (const char* target : {"portable", "tgi", "json"}) {
    CAPTURE(target);
    const test::InjectPlace place(one_layer());
    place.add_to_config("quantization_config", R"({"quant_method": "compressed-tensors"})");
    place.folder.write("model/hf_quant_config.json",
                       R"({"producer": {"name": "modelopt"}, "quantization": {}})");
    if (std::string(target) == "json") {  // this target changes no model
      place.inject("model", one_scale(), "out.json", target);
      continue;
    }
    CHECK(place.error(one_scale(), target) ==
          "'model/hf_quant_config.json': is ModelOpt's, but 'model/config.json': "
          "quantization_config: is of quant_method 'compressed-tensors'");
  }
}

TEST_CASE("targets: a model whose cache is quantised otherwise is refused") {
  const test::InjectPlace place(one_layer());
  place.add_to_config("quantization_config",
                      R"({"quant_method": "compressed-tensors", "config_groups": {"g": {}},
                          "kv_cache_scheme": {"num_bits": 4, "type": "float"}})");
  CHECK(place.error(one_scale(), "vllm") ==
        "'model/config.json': quantization_config.kv_cache_scheme: is "
        "{\"num_bits\": 4, \"type\": \"float\"}, expected a cache of 8-bit floats");
  const test::InjectPlace modelopt(one_layer());
  modelopt.folder.write(
      "model/hf_quant_config.json",
      R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}})");
  CHECK(modelopt.error(one_scale(), "vllm") ==
        "'model/hf_quant_config.json': quantization.kv_cache_quant_algo: is 'NVFP4', expected "
        "'FP8'");
  // static_kv_dtype in a block that stays as it is, or gets a scheme beside it, is refused.
  for (const auto& [method, target] :
       {std::pair{"auto-round", "tgi"}, {"gptq", "tgi"}, {"fp8", "tgi"}, {"fp8", "vllm"}}) {
    CAPTURE(std::string(method));
    const test::InjectPlace autoround(one_layer());
    autoround.add_to_config("quantization_config",
                            cat(R"({"quant_method": ")", method, R"(", "provider": "auto-round",
                                    "bits": 4, "group_size": 8, "static_kv_dtype": "int8"})"));
    CHECK(autoround.error(one_scale(), target) ==
          "'model/config.json': quantization_config.static_kv_dtype: is 'int8', expected an FP8 "
          "cache");
  }
}

TEST_CASE("targets: what a runtime cannot take beside a quantisation is refused with the reason") {
  const struct {
    const char* target;
    const char* method;
    const char* reason;
  } cases[] = {
      {"tgi", "modelopt",
       "ModelOpt calls the scales k_proj.k_scale and v_proj.v_scale, which TGI does not read"},
      {"tgi-2028", "fp8",
       "its form is one of FP16 and BF16 models: the branch was never merged, and other weights "
       "were never tried with it"},
      {"vllm", "gptq",
       "only a config of compressed-tensors, fp8 or modelopt makes it read KV scales"},
      {"sglang", "quark",
       "a config of Quark must describe the output of every K and V projection, which is not "
       "written here"},
      {"vllm-rocm", "compressed-tensors",
       "with such a config vLLM does not double the scales on MI300, so that values saturate "
       "early"}};
  for (const auto& wrong : cases) {
    const test::InjectPlace place(one_layer());
    place.add_to_config(
        "quantization_config",
        cat(R"({"config_groups": {"g": {}}, "quant_method": ")", wrong.method, "\"}"));
    CHECK(place.error(one_scale(), wrong.target) == cat("'model': is quantised by '", wrong.method,
                                                        "', and cannot take scales for '",
                                                        wrong.target, "': ", wrong.reason));
    CHECK_FALSE(fs::exists(place.folder / "out"));
    CHECK_NOTHROW(place.inject("model", one_scale(), "s.json", "json"));
  }
}

TEST_CASE("targets: GPTQ and AWQ models take scales for TGI, whose weights do not matter") {
  const test::InjectPlace place(one_layer());
  place.add_to_config("quantization_config", R"({"quant_method": "gptq", "bits": 4})");
  place.inject("model", one_scale(), "out", "tgi");
  CHECK(block_of(place, "out") == R"({"quant_method": "gptq", "bits": 4})");
  CHECK(place.scales_in("out").layers == one_scale().layers);
}

}  // namespace fp8kv
