#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "scales/read/find_scales.h"
#include "support/expect_error.h"
#include "support/models/scaled_model.h"

namespace fp8kv {
namespace {

using test::ScaledModel;
using Layers = std::vector<LayerScales>;

TEST_CASE("dialects: kv_scale is the scale of K and of V") {
  ScaledModel model;
  model.layer(0, "kv_scale", 0.5).layer(1, "kv_scale", 0.25);
  const FoundScales found = model.read();
  CHECK(found.dialect == "kv_scale");
  CHECK(found.scales.layers == Layers{{{0.5f}, {0.5f}}, {{0.25f}, {0.25f}}});
  CHECK(found.scales.format == KvFormat::e4m3fn);
  CHECK(found.scales.model_type == "llama");
  CHECK(found.scales.n_kv_heads == 2);
  CHECK(found.scales.provenance.source == "kv_scale");
  CHECK(found.kv_cache_torch_dtype == "");
  REQUIRE(found.tensors.size() == 2);
  CHECK(found.tensors[1].name == "model.layers.1.self_attn.kv_scale");
  CHECK(found.tensors[1].layer == 1);
  CHECK(found.tensors[1].of == ScaleOf::both);
  CHECK(found.notes.empty());
}

TEST_CASE("dialects: k_scale and v_scale are read apart") {
  ScaledModel model;
  model.layer(1, "k_scale", 3).layer(1, "v_scale", 4).layer(0, "v_scale", 2).layer(0, "k_scale", 1);
  const FoundScales found = model.read();
  CHECK(found.dialect == "k_scale/v_scale");
  CHECK(found.scales.layers == Layers{{{1}, {2}}, {{3}, {4}}});
}

TEST_CASE("dialects: layers are ordered by number, not by name") {
  ScaledModel model;
  model.config("num_hidden_layers", "11");
  for (int layer = 0; layer < 11; ++layer) model.layer(layer, "kv_scale", layer + 1);
  const FoundScales found = model.read();
  for (size_t layer = 0; layer < 11; ++layer) {
    CHECK(found.scales.layers[layer].k[0] == static_cast<float>(layer + 1));
  }
}

TEST_CASE("dialects: every float dtype and every shape of one element is accepted") {
  const struct {
    DType dtype;
    Shape shape;
  } cases[] = {{DType::f32, {}},
               {DType::f32, {1}},
               {DType::f16, {}},
               {DType::bf16, {1}},
               {DType::f64, {1, 1, 1}}};
  for (const auto& form : cases) {
    ScaledModel model;
    model.add("model.layers.0.self_attn.kv_scale", {0.375}, form.dtype, form.shape);
    model.add("model.layers.1.self_attn.kv_scale", {1.5}, form.dtype, form.shape);
    INFO(dtype_name(form.dtype), " ", form.shape.text());
    CHECK(model.read().scales.layers == Layers{{{0.375f}, {0.375f}}, {{1.5f}, {1.5f}}});
  }
}

TEST_CASE("dialects: one scale per KV head is accepted as [n] and [n, 1, 1]") {
  for (const Shape& shape : {Shape{2}, Shape{2, 1, 1}}) {
    ScaledModel model;
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = cat("model.layers.", layer, ".self_attn.");
      model.add(at + "k_scale", {0.5, 0.25}, DType::bf16, shape);
      model.add(at + "v_scale", {1, 2}, DType::bf16, shape);
    }
    CHECK(model.read().scales.layers == Layers(2, {{0.5f, 0.25f}, {1, 2}}));
  }
}

TEST_CASE("dialects: any prefix before the layers will do, but only one") {
  for (const std::string prefix : {"", "model.", "language_model.model.", "model.decoder."}) {
    ScaledModel model;
    model.add(prefix + "layers.0.self_attn.kv_scale", {1});
    model.add(prefix + "layers.1.self_attn.kv_scale", {2});
    CHECK(model.read().scales.layers == Layers{{{1}, {1}}, {{2}, {2}}});
  }
  ScaledModel model;
  model.add("a.layers.0.self_attn.kv_scale", {1}).add("b.layers.1.self_attn.kv_scale", {1});
  CHECK(model.error() ==
        "'MODEL': 'b.layers.1.self_attn.kv_scale' and 'a.layers.0.self_attn.kv_scale': scales of "
        "two different stacks of layers");
}

TEST_CASE("dialects: a Quark config that lists no layers of the cache is named") {
  ScaledModel model;
  for (int layer = 0; layer < 2; ++layer) {
    model.layer(layer, "k_proj.output_scale", 0.5).layer(layer, "v_proj.output_scale", 0.25);
  }
  for (const char* exported : {R"({"kv_cache_group": []})", "{}"}) {
    model.config("quantization_config",
                 cat(R"({"quant_method": "quark", "export": )", exported, "}"));
    CHECK(model.error() ==
          "'MODEL': 'model.layers.0.self_attn.k_proj.output_scale' is named as Quark names the "
          "scales of a KV cache, but config.json: quantization_config.export.kv_cache_group names "
          "no layers");
  }
  model.config(
      "quantization_config",
      R"({"quant_method": "quark", "export": {"kv_cache_group": ["*k_proj", "*v_proj"]}})");
  CHECK(model.read().scales.layers == Layers(2, {{0.5f}, {0.25f}}));
}

TEST_CASE("dialects: kv_cache_torch_dtype says whether scales are for FNUZ") {
  ScaledModel model;
  model.layer(0, "kv_scale", 0.5).layer(1, "kv_scale", 0.25);
  model.config("kv_cache_torch_dtype", "\"float8_e4m3fnuz\"");
  CHECK(model.read().scales.format == KvFormat::e4m3fnuz);
  CHECK(model.read().scales.layers[0].k[0] == 0.5f);
  CHECK(model.read().kv_cache_torch_dtype == "float8_e4m3fnuz");
  model.config("kv_cache_torch_dtype", "\"float8_e4m3fn\"");
  CHECK(model.read().scales.format == KvFormat::e4m3fn);
  model.config("kv_cache_torch_dtype", "\"float8_e5m2\"");
  CHECK(model.error() ==
        "'MODEL/config.json': kv_cache_torch_dtype: is 'float8_e5m2', expected 'float8_e4m3fn' or "
        "'float8_e4m3fnuz'");
}

TEST_CASE("dialects: both forms together are read when they agree") {
  ScaledModel model;
  for (int layer = 0; layer < 2; ++layer) {
    model.layer(layer, "k_scale", 0.1).layer(layer, "v_scale", 0.3).layer(layer, "kv_scale", 0.3);
  }
  const FoundScales found = model.read();
  CHECK(found.dialect == "kv_scale and k_scale/v_scale");
  CHECK(found.scales.layers == Layers(2, {{0.1f}, {0.3f}}));
  CHECK(found.tensors.size() == 6);
}

TEST_CASE("dialects: forms agree when they differ only by the rounding of the coarser dtype") {
  for (const DType coarse : {DType::bf16, DType::f16}) {
    ScaledModel fine_pair;
    ScaledModel coarse_pair;
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = cat("model.layers.", layer, ".self_attn.");
      fine_pair.add(at + "kv_scale", {0.3}, coarse);
      fine_pair.add(at + "k_scale", {0.3}).add(at + "v_scale", {0.2});
      coarse_pair.add(at + "kv_scale", {0.3});
      coarse_pair.add(at + "k_scale", {0.3}, coarse).add(at + "v_scale", {0.2}, coarse);
    }
    CHECK(fine_pair.read().scales.layers == Layers(2, {{0.3f}, {0.2f}}));
    CHECK(coarse_pair.read().scales.layers.size() == 2);
  }
}

TEST_CASE("dialects: other names of Q's scales and zero points are ignored with a word") {
  ScaledModel model;
  for (int layer = 0; layer < 2; ++layer) {
    model.layer(layer, "k_scale", 1).layer(layer, "v_scale", 1);
    model.layer(layer, "q_proj.output_scale", 1);
  }
  model.add("model.layers.0.self_attn.k_zero_point", {0}, DType::i8, {1});
  CHECK(model.read().notes ==
        std::vector<std::string>{
            "ignored 'model.layers.0.self_attn.q_proj.output_scale' and 1 other: scales of Q's "
            "projection, which is not cached",
            "ignored 'model.layers.0.self_attn.k_zero_point': zero points, which are 0"});
  model.add("model.layers.1.self_attn.v_zero_point", {3}, DType::i8, {1});
  CHECK(model.error() ==
        "'MODEL': 'model.layers.1.self_attn.v_zero_point': is not 0: scales with an offset cannot "
        "be used");
}

TEST_CASE(
    "dialects: ModelOpt's offsets must be 0 as zero points must, those of other modules not") {
  ScaledModel model;
  for (int layer = 0; layer < 2; ++layer) {
    model.layer(layer, "k_scale", 1).layer(layer, "v_scale", 1);
    model.layer(layer, "o_proj.output_zero_point", 7).layer(layer, "k_proj.bias", 3);
    model.layer(layer, "k_proj.k_bias", 0);
  }
  CHECK(model.read().notes == std::vector<std::string>{"ignored "
                                                       "'model.layers.0.self_attn.k_proj.k_bias' "
                                                       "and 1 other: zero points, which are 0"});
  model.layer(1, "v_proj.v_bias", 2);
  CHECK(model.error() ==
        "'MODEL': 'model.layers.1.self_attn.v_proj.v_bias': is not 0: scales with an offset cannot "
        "be used");
}

TEST_CASE("dialects: scales under AutoFP8's config without its rounding are another tool's") {
  for (const bool autofp8 : {true, false}) {
    ScaledModel model;
    model.config("quantization_config", R"({"quant_method": "fp8", "kv_cache_scheme": "static"})");
    for (int layer = 0; layer < 2; ++layer) {
      model.layer(layer, "k_scale", autofp8 ? 1 / 18.4375f : 0.0597447f);
      model.layer(layer, "v_scale", autofp8 ? 1 / 25.625f : 0.012233189f);
    }
    const FoundScales found = model.read();
    CHECK(found.dialect == "autofp8");
    CHECK(found.scales.provenance.producer == (autofp8 ? "AutoFP8" : ""));
    CHECK(found.scales.provenance.observation ==
          (autofp8 ? Observation::before_rope : Observation::unknown));
    CHECK(found.diagnoses.empty() != autofp8);
  }
}

TEST_CASE("dialects: a scale under two names is one scale, if the values are equal") {
  const auto fill = [](ScaledModel& model, double k, double of_parameter) {
    for (const int layer : {0, 1}) {
      model.layer(layer, "k_scale", k).layer(layer, "v_scale", 2);
      model.layer(layer, "attn.k_scale", of_parameter).layer(layer, "attn.v_scale", 2);
    }
  };
  ScaledModel equal, other;
  fill(equal, 1.5, 1.5);
  const FoundScales found = scales_at(equal.open());
  CHECK(found.dialect == "k_scale/v_scale");
  CHECK(found.tensors.size() == 4);
  CHECK(found.scales.layers[1].k == std::vector<float>{1.5});
  CHECK(found.notes.empty());
  REQUIRE(found.ignored.size() == 4);
  CHECK(found.ignored[0].name == "model.layers.0.self_attn.attn.k_scale");
  fill(other, 1.5, 1.25);
  CHECK(other.error() ==
        "'MODEL': 'model.layers.0.self_attn.k_scale' is 1.5, "
        "'model.layers.0.self_attn.attn.k_scale' is 1.25: expected the same, as both are one "
        "scale");
}

TEST_CASE("dialects: scales of weights and inputs are no KV scales") {
  ScaledModel model;
  for (const std::string kind :
       {"k_proj.weight_scale", "k_proj.weight_scale_inv", "k_proj.input_scale", "v_proj.scales",
        "k_proj.qzeros", "k_norm.weight", "q_proj.output_scale"}) {
    model.layer(0, kind, 1);
  }
  CHECK_FALSE(find_scales(model.open()));
}

TEST_CASE("dialects: a scale where the model writes no cache is left alone, and said") {
  ScaledModel model;
  model.config("layer_types", R"(["full_attention", "linear_attention"])");
  model.layer(1, "k_scale", 2).layer(1, "v_scale", 0);
  CHECK(model.error() ==
        "'MODEL': has KV scales only for layers that write no KV cache, such as "
        "'model.layers.1.self_attn.k_scale'");
  model.layer(0, "k_scale", 0.5f).layer(0, "v_scale", 0.25f);
  const FoundScales found = model.read();
  CHECK(found.scales.layers == Layers{{{0.5f}, {0.25f}}, {}});
  CHECK(found.notes == std::vector<std::string>{"ignored 'model.layers.1.self_attn.k_scale' and 1 "
                                                "other: scales of a layer that writes no KV "
                                                "cache"});
  CHECK(found.tensors.size() == 2);
  CHECK(found.ignored.size() == 2);
}

}  // namespace
}  // namespace fp8kv
