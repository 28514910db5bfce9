// Injects scales into models of every architecture, with their own names for layers and attention.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "scales/read/find_scales.h"
#include "scales/scale_names.h"
#include "scales/write/inject.h"
#include "support/models/family_model.h"
#include "support/workplaces/inject_place.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

// Different numbers for each layer, and for K and V. Layers with V in K have one number for both.
KvScales scales_of(const ModelConfig& config) {
  KvScales scales;
  scales.model_type = config.model_type;
  scales.n_kv_heads = config.n_kv_heads();
  const std::vector<bool> cached = layers_with_cache(config);
  for (size_t layer = 0; layer < cached.size(); ++layer) {
    const float k = static_cast<float>(3 + layer) / 97;
    const float v = config.layers[layer].v_in_k ? k : k / 3;
    scales.layers.push_back(cached[layer] ? LayerScales{{k}, {v}} : LayerScales{});
  }
  return scales;
}

// The names of the first layer's scales.
Strings scale_names_for(const std::string& golden, const std::string& target) {
  const test::FamilyModel model(golden);
  const auto out = model.folder.path() / "out";
  inject_scales(model.checkpoint, scales_of(model.config), out, {.target = target});
  Strings names;
  for (const std::string& name : kv_scale_names(Checkpoint::open(out))) {
    if (name.find(".0.") != name.npos || name.starts_with("h.0.")) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("inject: models of every architecture take scales, and give them back bit for bit") {
  for (const std::string& name : test::family_cases(2)) {
    const test::FamilyModel model(name);
    const KvScales scales = scales_of(model.config);
    for (const char* target : {"portable", "tgi"}) {
      CAPTURE(cat(name, " for ", target));
      const auto out = model.folder.path() / target;
      inject_scales(model.checkpoint, scales, out, {.target = target});
      CHECK(scales_at(Checkpoint::open(out)).scales.layers == scales.layers);
    }
  }
}

TEST_CASE("inject: those of a latent go by the names that SGLang reads") {
  for (const char* golden :
       {"deepseek-v2", "deepseek-v3", "kimi-k2", "glm4-moe-lite", "deepseek-v32", "glm-moe-dsa"}) {
    CAPTURE(std::string(golden));
    CHECK(scale_names_for(golden, "portable") ==
          Strings{"model.layers.0.self_attn.k_proj.k_scale",
                  "model.layers.0.self_attn.v_proj.v_scale"});
  }
}

TEST_CASE("inject: those of layers between states go by the prefix that the file has") {
  const std::pair<const char*, std::string> kCases[] = {
      {"granite4-new-keys", "model.layers.0.self_attn."},
      {"nemotron-h-model-names", "model.layers.0.mixer."},
      {"bamba-bias", "model.layers.0.self_attn."},
      {"falcon-h1-bias", "model.layers.0.self_attn."}};
  for (const auto& [golden, at] : kCases) {
    CAPTURE(std::string(golden));
    CHECK(scale_names_for(golden, "vllm") == Strings{at + "k_scale", at + "v_scale"});
  }
  const test::FamilyModel model("nemotron-h");
  const auto out = model.folder.path() / "out";
  inject_scales(model.checkpoint, scales_of(model.config), out, {.target = "vllm"});
  CHECK(kv_scale_names(Checkpoint::open(out)) ==
        Strings{"backbone.layers.3.mixer.k_scale", "backbone.layers.3.mixer.v_scale"});
}

TEST_CASE("inject: scales stand beside the matrix of Q, K and V, where loaders look for them") {
  const std::pair<const char*, std::string> kAttention[] = {
      {"gpt2", "transformer.h.0.attn"},
      {"gpt2-first-names", "h.0.attn"},
      {"gpt-bigcode", "transformer.h.0.attn"},
      {"gpt-neox", "gpt_neox.layers.0.attention"},
      {"falcon", "transformer.h.0.self_attention"},
      {"internlm2", "model.layers.0.attention"},
      {"baichuan-7b", "model.layers.0.self_attn"}};
  for (const auto& [golden, at] : kAttention) {
    CAPTURE(golden);
    for (const char* target : {"portable", "vllm", "sglang"}) {
      CHECK(scale_names_for(golden, target) == Strings{at + ".attn.k_scale", at + ".attn.v_scale"});
    }
    CHECK(scale_names_for(golden, "tgi") ==
          Strings{at + ".k_scale", at + ".kv_scale", at + ".v_scale"});
  }
}

TEST_CASE("inject: a model that ModelOpt quantised, and whose Q, K and V are one, is refused") {
  const test::InjectPlace place(test::one_layer());
  place.add_to_config("model_type", R"("gpt2")");
  place.add_to_config("quantization_config",
                      R"({"quant_method": "modelopt", "quant_algo": "FP8"})");
  KvScales scales;
  scales.layers = {{{0.5f}, {0.25f}}};
  const std::string error = place.error(scales, "portable");
  CHECK(error.find("is a gpt2 quantised by 'modelopt', and cannot take scales for 'portable': "
                   "ModelOpt puts scales beside k_proj and v_proj") != error.npos);
}

}  // namespace fp8kv
