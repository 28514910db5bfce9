// Folders with scales for NVFP4 caches, in ModelOpt's form.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/linear_modules.h"
#include "checkpoint/quant_config.h"
#include "scales/rules/runtime_choice.h"
#include "scales/verify/verify_scales.h"
#include "support/workplaces/inject_place.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;
using test::InjectPlace;

// A BF16 model, because vLLM rounds scales to the model's dtype.
test::TinyConfig heads_of_16() {
  test::TinyConfig config = test::tiny_config();
  config.dtype = DType::bf16;
  config.head_dim = 16;
  return config;
}

KvScales nvfp4_scales(const test::TinyConfig& config, bool per_head = false) {
  Rng rng(7);
  KvScales scales = test::random_scales(config, rng, per_head);
  scales.format = KvFormat::nvfp4;
  // Scales of a size that BF16 holds.
  for (LayerScales& layer : scales.layers) {
    for (std::vector<float>* each : {&layer.k, &layer.v}) {
      for (float& scale : *each) scale = 0.25f + 0.5f * static_cast<float>(rng.uniform());
    }
  }
  return scales;
}

constexpr const char* kBlock = R"("quantization_config": {
    "quant_method": "modelopt",
    "quant_algo": "FP8",
    "ignore": [
      "*"
    ],
    "kv_cache_scheme": {
      "dynamic": false,
      "num_bits": 4,
      "type": "float"
    }
  })";

TEST_CASE("inject nvfp4: ModelOpt's names, shapes and config, which come out again") {
  const InjectPlace place(heads_of_16());
  const KvScales scales = nvfp4_scales(place.config);
  place.inject("model", scales, "out", "vllm");
  const std::string config = test::read_file(place.folder / "out/config.json");
  CHECK(config.find(kBlock) != config.npos);
  CHECK(config.find("kv_cache_torch_dtype") == config.npos);
  CHECK(place.scale_tensors("out") == Strings{"model.layers.0.self_attn.k_proj.k_scale",
                                              "model.layers.0.self_attn.v_proj.v_scale",
                                              "model.layers.1.self_attn.k_proj.k_scale",
                                              "model.layers.1.self_attn.v_proj.v_scale"});
  const Checkpoint out = Checkpoint::open(place.folder / "out");
  for (const std::string& name : place.scale_tensors("out")) {
    CHECK(out.tensors().at(name).entry.shape == Shape{});
  }
  const FoundScales found = scales_at(out);
  CHECK(found.scales.layers == scales.layers);
  CHECK(found.scales.format == KvFormat::nvfp4);
  CHECK(found.dialect == "modelopt-nvfp4");
  CHECK(quantised_weights(read_quant_config(out), linear_modules(out.tensors())) == "");
}

TEST_CASE("inject nvfp4: the most general folder is the same, and replaces one of FP8") {
  const InjectPlace place(heads_of_16());
  const KvScales scales = nvfp4_scales(place.config);
  place.inject("model", scales, "portable", "portable");
  place.inject("model", scales, "vllm", "vllm");
  KvScales fp8 = scales;
  fp8.format = KvFormat::e4m3fn;
  place.inject("model", fp8, "fp8", "portable");
  place.inject("fp8", scales, "again", "vllm", true);
  place.inject("again", fp8, "back", "portable", true);
  for (const char* name : {"config.json", "model-kv-scales.safetensors"}) {
    CAPTURE(std::string(name));
    const auto bytes = [&](const char* folder) {
      return test::read_file(place.folder / folder / name);
    };
    CHECK(bytes("portable") == bytes("vllm"));
    if (std::string(name) == "config.json") continue;  // its members have another order
    CHECK(bytes("back") == bytes("fp8"));
    CHECK(bytes("again") == bytes("vllm"));
  }
  CHECK(place.config_of("back").at("quantization_config").brief() ==
        place.config_of("fp8").at("quantization_config").brief());
  CHECK(place.config_of("back").has("kv_cache_torch_dtype"));
  CHECK(place.config_of("again").at("quantization_config").brief() ==
        place.config_of("vllm").at("quantization_config").brief());
  CHECK_FALSE(place.config_of("again").has("kv_cache_torch_dtype"));
}

TEST_CASE("inject nvfp4: a model that ModelOpt quantised gets the scheme in both of its configs") {
  const InjectPlace place(heads_of_16());
  place.add_to_config("quantization_config",
                      R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})");
  place.folder.write("model/hf_quant_config.json",
                     R"({"producer": {"name": "modelopt", "version": "0.47.0"},
                         "quantization": {"quant_algo": "NVFP4"}})");
  const KvScales scales = nvfp4_scales(place.config);
  place.inject("model", scales, "out", "vllm");
  CHECK(place.config_of("out").at("quantization_config").at("kv_cache_scheme").brief() ==
        R"({"dynamic": false, "num_bits": 4, "type": "float"})");
  CHECK(Json::read(place.folder / "out/hf_quant_config.json")
            .at("quantization")
            .at("kv_cache_quant_algo")
            .as_string() == "NVFP4");
  CHECK(place.scales_in("out").layers == scales.layers);
}

TEST_CASE("inject nvfp4: heads have one scale together") {
  const InjectPlace place(heads_of_16());
  const KvScales scales = nvfp4_scales(place.config, true);
  const InjectReport report = place.inject("model", scales, "out", "vllm");
  CHECK(place.scales_in("out").layers == per_tensor(scales).layers);
  CHECK(report.notes[0] ==
        "the scales of 2 KV heads were reduced to their maximum: an NVFP4 cache has one per layer");
}

TEST_CASE("inject nvfp4: what has no such cache refuses the scales") {
  const InjectPlace place(heads_of_16());
  const KvScales scales = nvfp4_scales(place.config);
  CHECK(place.error(scales, "tgi") ==
        "'model': cannot take scales of NVFP4 for 'tgi': TGI has no NVFP4 cache that reads scales");
  CHECK(place.error(scales, "sglang") ==
        "'model': cannot take scales of NVFP4 for 'sglang': SGLang has no NVFP4 cache that reads "
        "scales");
  CHECK_NOTHROW(place.inject("model", scales, "s.json", "json"));
  CHECK(place.scales_in("s.json").layers == scales.layers);
  place.add_to_config("quantization_config",
                      R"({"quant_method": "compressed-tensors", "config_groups": {"g": {}}})");
  CHECK(place.error(scales, "vllm") ==
        "'model': cannot take scales of NVFP4 for 'vllm': it is quantised by 'compressed-tensors', "
        "and only a config of ModelOpt asks vLLM for an NVFP4 cache");
}

TEST_CASE("inject nvfp4: heads that are no whole blocks are refused") {
  const InjectPlace place;
  const std::string dim = cat(place.config.head_dim);
  CHECK(place.error(nvfp4_scales(place.config), "vllm") ==
        cat("the scales: is for nvfp4, but heads of layer 0 have ", dim,
            " elements, expected a multiple of 16"));
}

TEST_CASE("inject nvfp4: a model for FP8 caches does not take NVFP4's, nor the other way round") {
  const InjectPlace place(heads_of_16());
  place.folder.write("model/hf_quant_config.json",
                     R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})");
  CHECK(place.error(nvfp4_scales(place.config), "vllm") ==
        "'model/hf_quant_config.json': quantization.kv_cache_quant_algo: is 'FP8', expected "
        "'NVFP4'");
}

// The fate of the layers in one runtime, and the command that serves them.
struct Verified {
  std::string fate, serve;
};
Verified verified(const InjectPlace& place, const std::string& runtime, ServingCase serving = {}) {
  const VerifyReport report =
      verify_scales(place.folder / "out",
                    {.asked = choose_runtimes(runtime), .usual = false, .serving = serving});
  const VerifiedRuntime& only = report.runtimes[0];
  return {fate_text(only.fate), only.serve};
}

TEST_CASE("verify nvfp4: vLLM 0.33 takes the scales, rounded, in an NVFP4 cache") {
  const InjectPlace place(heads_of_16());
  place.inject("model", nvfp4_scales(place.config), "out", "vllm");
  const Verified found = verified(place, "vllm@0.33");
  CHECK(found.fate.starts_with("rounded by "));
  CHECK(found.serve.starts_with("vllm serve "));
  CHECK(found.serve.ends_with(" --kv-cache-dtype nvfp4"));
  CHECK(verified(place, "vllm@0.33", {CacheFlag::fp8}).fate == "misread");
  CHECK(verified(place, "vllm@0.33", {CacheFlag::nvfp4}).fate.starts_with("rounded by "));
  CHECK(verified(place, "vllm@0.28").fate == "not known");
  CHECK(verified(place, "sglang").fate == "not known");
  CHECK(verified(place, "tgi").fate == "ignored");
}

TEST_CASE("verify nvfp4: scales of FP8 mean something else in an NVFP4 cache") {
  const InjectPlace place(heads_of_16());
  KvScales scales = nvfp4_scales(place.config);
  scales.format = KvFormat::e4m3fn;
  place.inject("model", scales, "out", "vllm");
  CHECK(verified(place, "vllm@0.33", {CacheFlag::nvfp4}).fate == "misread");
  CHECK(verified(place, "vllm@0.33").fate == "exact");
  CHECK(verified(place, "vllm@0.33", {CacheFlag::own_scales}).fate == "unused");
}

}  // namespace
}  // namespace fp8kv
