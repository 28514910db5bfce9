#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/half.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

std::string bytes_of(const std::vector<double>& values, DType dtype) {
  std::string bytes;
  const auto put = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const double value : values) {
    const auto single = static_cast<float>(value);
    if (dtype == DType::f32) put(single);
    if (dtype == DType::f64) put(value);
    if (dtype == DType::f16) put(f16_from_float(single));
    if (dtype == DType::bf16) put(bf16_from_float(single));
    if (dtype == DType::i32) put(static_cast<int32_t>(value));
    if (dtype == DType::i8) put(static_cast<int8_t>(value));
  }
  return bytes;
}

// A model folder of two layers and two KV heads whose only tensors are those added.
class ScaledModel {
 public:
  ScaledModel& add(const std::string& name, const std::vector<double>& values,
                   DType dtype = DType::f32, const Shape& shape = {}) {
    tensors_.push_back({name, bytes_of(values, dtype), dtype, shape});
    return *this;
  }
  // Scales of one layer, [] and F32.
  ScaledModel& layer(int number, const std::string& kind, double value) {
    return add(cat("model.layers.", number, ".self_attn.", kind), {value});
  }
  ScaledModel& config(const std::string& key, const std::string& value) {
    config_ = json_with_member(config_, key, value);
    return *this;
  }

  Checkpoint open() const {
    std::vector<TensorToWrite> items;
    for (const Tensor& tensor : tensors_) {
      const auto* bytes = reinterpret_cast<const std::byte*>(tensor.bytes.data());
      items.push_back({tensor.name, ConstTensorView(bytes, tensor.dtype, tensor.shape)});
    }
    folder_.write("config.json", config_);
    folder_.write("model.safetensors", safetensors_bytes(items, {{"format", "pt"}}));
    return Checkpoint::open(folder_.path());
  }
  FoundScales read() const { return scales_at(open()); }
  // The error, without the folder's name.
  std::string error() const {
    const Checkpoint checkpoint = open();
    std::string message = test::error_of([&] { scales_at(checkpoint); });
    const std::string folder = folder_.path().string();
    REQUIRE(message.find(folder) != std::string::npos);
    for (size_t at = 0; (at = message.find(folder)) != message.npos;) {
      message.replace(at, folder.size(), "MODEL");
    }
    return message;
  }

 private:
  struct Tensor {
    std::string name;
    std::string bytes;
    DType dtype;
    Shape shape;
  };
  test::TempDir folder_;
  std::string config_ = test::tiny_config_json(test::tiny_config());
  std::vector<Tensor> tensors_;
};

using Layers = std::vector<LayerScales>;

TEST_CASE("dialects: kv_scale is the scale of K and of V") {
  ScaledModel model;
  model.layer(0, "kv_scale", 0.5).layer(1, "kv_scale", 0.25);
  const FoundScales found = model.read();
  CHECK(found.dialect == "kv_scale");
  CHECK(found.scales.layers == Layers{{{0.5f}, {0.5f}}, {{0.25f}, {0.25f}}});
  CHECK(found.scales.format == Fp8Format::e4m3fn);
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

TEST_CASE("dialects: kv_cache_torch_dtype says whether scales are for FNUZ") {
  ScaledModel model;
  model.layer(0, "kv_scale", 0.5).layer(1, "kv_scale", 0.25);
  model.config("kv_cache_torch_dtype", "\"float8_e4m3fnuz\"");
  CHECK(model.read().scales.format == Fp8Format::e4m3fnuz);
  CHECK(model.read().scales.layers[0].k[0] == 0.5f);
  CHECK(model.read().kv_cache_torch_dtype == "float8_e4m3fnuz");
  model.config("kv_cache_torch_dtype", "\"float8_e4m3fn\"");
  CHECK(model.read().scales.format == Fp8Format::e4m3fn);
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

TEST_CASE("dialects: forms that disagree are both shown") {
  ScaledModel model;
  model.layer(0, "kv_scale", 0.5).layer(0, "k_scale", 0.5).layer(0, "v_scale", 0.25);
  model.layer(1, "kv_scale", 0.5).layer(1, "k_scale", 0.25).layer(1, "v_scale", 0.375);
  CHECK(model.error() ==
        "'MODEL': 'model.layers.1.self_attn.kv_scale' is 0.5, 'model.layers.1.self_attn.v_scale' "
        "is 0.375: expected the same, as kv_scale is the maximum of K and V");
}

TEST_CASE("dialects: missing and surplus layers are named") {
  ScaledModel missing;
  missing.layer(0, "kv_scale", 0.5);
  CHECK(missing.error() == "'MODEL': has KV scales for 1 layer, but none for layer 1");
  missing.config("num_hidden_layers", "65536");
  CHECK(missing.error() ==
        "'MODEL': has KV scales for 1 layer, but none for layers 1, 2, 3, 4 and "
        "65,531 others");
  missing.config("num_hidden_layers", "2").config("attn_layer_indices", "[0]");
  CHECK(missing.error() ==
        "'MODEL': has KV scales for 1 layer, but none for layer 1, and which layers of the model "
        "write a KV cache is not known: 'MODEL/config.json': attn_layer_indices: which layers hold "
        "what cache is said in a way not known here");
  ScaledModel surplus;
  for (int layer = 0; layer < 3; ++layer) surplus.layer(layer, "kv_scale", 0.5);
  CHECK(surplus.error() ==
        "'MODEL': 'model.layers.2.self_attn.kv_scale': there is no such layer, the model has 2");
}

TEST_CASE("dialects: K without V and V without K are refused, even beside kv_scale") {
  ScaledModel model;
  model.layer(0, "k_scale", 0.5).layer(0, "v_scale", 0.5).layer(1, "k_scale", 0.5);
  CHECK(model.error() ==
        "'MODEL': 'model.layers.1.self_attn.k_scale': the scale of V for it is missing");
  ScaledModel fused;
  fused.layer(0, "kv_scale", 0.5).layer(1, "kv_scale", 0.5).layer(0, "v_scale", 0.5);
  CHECK(fused.error() ==
        "'MODEL': 'model.layers.0.self_attn.v_scale': the scale of K for it is missing");
}

TEST_CASE("dialects: values no runtime can use are refused by name") {
  const struct {
    double value;
    const char* found;
  } cases[] = {{0, "0"},
               {-0.25, "-0.25"},
               {std::numeric_limits<double>::quiet_NaN(), "NaN"},
               {std::numeric_limits<double>::infinity(), "inf"}};
  for (const auto& bad : cases) {
    ScaledModel model;
    model.layer(0, "kv_scale", 0.5).layer(1, "kv_scale", bad.value);
    CHECK(model.error() == cat("'MODEL': 'model.layers.1.self_attn.kv_scale': is ", bad.found,
                               ", expected a positive, finite, normal number"));
  }
  ScaledModel heads;
  heads.add("model.layers.0.self_attn.kv_scale", {1, 0}, DType::f16, {2});
  CHECK(heads.error() ==
        "'MODEL': 'model.layers.0.self_attn.kv_scale': head 1 is 0, expected a positive, finite, "
        "normal number");
}

TEST_CASE("dialects: another dtype or shape is refused") {
  ScaledModel dtype;
  dtype.add("model.layers.0.self_attn.kv_scale", {1}, DType::i32);
  CHECK(dtype.error() ==
        "'MODEL': 'model.layers.0.self_attn.kv_scale': is I32, expected F32, F16, BF16 or F64");
  ScaledModel shape;
  shape.add("model.layers.0.self_attn.kv_scale", {1, 1, 1}, DType::f32, {3});
  CHECK(shape.error() ==
        "'MODEL': 'model.layers.0.self_attn.kv_scale': has the shape [3], expected [], [1] or one "
        "number for each of 2 KV heads");
  ScaledModel matrix;
  matrix.add("model.layers.0.self_attn.kv_scale", {1, 1, 1, 1}, DType::f32, {2, 2});
  CHECK(matrix.error() ==
        "'MODEL': 'model.layers.0.self_attn.kv_scale': has the shape [2, 2], expected [], [1] or "
        "one number for each of 2 KV heads");
  ScaledModel empty;
  empty.add("model.layers.0.self_attn.kv_scale", {}, DType::f32, {0});
  CHECK(empty.error() ==
        "'MODEL': 'model.layers.0.self_attn.kv_scale': has the shape [0], expected [], [1] or one "
        "number for each of 2 KV heads");
}

TEST_CASE("dialects: layers of different granularity are refused") {
  ScaledModel model;
  model.layer(0, "kv_scale", 1).add("model.layers.1.self_attn.kv_scale", {1, 2}, DType::f32, {2});
  CHECK(model.error() == "'MODEL': layer 1: has 2 K and 2 V scales, expected 1 of each");
}

TEST_CASE("dialects: scales of Q and zero points are ignored with a word") {
  ScaledModel model;
  for (int layer = 0; layer < 2; ++layer) {
    model.layer(layer, "k_scale", 1).layer(layer, "v_scale", 1).layer(layer, "q_scale", 1);
  }
  model.add("model.layers.0.self_attn.k_zero_point", {0}, DType::i8, {1});
  CHECK(model.read().notes ==
        std::vector<std::string>{
            "ignored 'model.layers.0.self_attn.q_scale' and 1 other: scales of Q, which is not "
            "cached",
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

TEST_CASE("dialects: KV scales of a form that is not read are an error, never 'no scales'") {
  for (const std::string name :
       {"transformer.layers.0.attention.kv_cache_scaling_factor", "transformer.h.0.attn.kv_scale",
        "model.layers.00.self_attn.kv_scale", "model.layers.-1.self_attn.kv_scale",
        "model.layers.0.self_attn.k_scales", "model.layers.0.self_attn.qkv_proj.output_scale"}) {
    ScaledModel model;
    model.add(name, {1});
    CHECK(model.error() ==
          cat("'MODEL': '", name, "' looks like a KV scale, but is in a form that is not read"));
  }
}

TEST_CASE("dialects: a form that is not read is an error beside one that is, too") {
  ScaledModel model;
  model.layer(0, "kv_scale", 1).layer(1, "kv_scale", 1);
  model.layer(0, "key_scale", 1).layer(1, "key_scale", 1);
  CHECK(model.error() ==
        "'MODEL': 'model.layers.0.self_attn.key_scale' (and 1 other) looks like a KV scale, but is "
        "in a form that is not read");
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
  CHECK(found.notes == std::vector<std::string>{
                           "ignored 'model.layers.0.self_attn.attn.k_scale' and 3 others: the "
                           "same scales under a second name"});
  fill(other, 1.5, 1.25);
  CHECK(other.error() ==
        "'MODEL': 'model.layers.0.self_attn.k_scale' is 1.5, "
        "'model.layers.0.self_attn.attn.k_scale' is 1.25: expected the same, as both are one "
        "scale");
}

TEST_CASE("dialects: layers in two forms are refused, also beside duplicates") {
  ScaledModel model;
  for (const char* kind : {"attn.k_scale", "attn.v_scale"})
    model.layer(0, kind, 1).layer(1, kind, 1);
  model.layer(0, "k_scale", 1).layer(0, "v_scale", 1);
  CHECK(model.error() ==
        "'MODEL': 'model.layers.0.self_attn.k_scale' is a name of k_scale/v_scale, "
        "'model.layers.1.self_attn.attn.k_scale' one of vllm-parameters: expected one form");
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

TEST_CASE("dialects: where there are no scales, that is an error only for who needs some") {
  ScaledModel model;
  model.add("model.norm.weight", {1});
  CHECK_FALSE(find_scales(model.open()));
  CHECK(model.error() == "'MODEL': has no KV scales");
}

TEST_CASE("dialects: a config that promises scales makes their absence an error of its own") {
  const auto with = [](const std::string& dynamic) {
    ScaledModel model;
    model.add("model.norm.weight", {1});
    model.config("quantization_config", cat(R"({"quant_method": "compressed-tensors",
        "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": )",
                                            dynamic, "}}"));
    return model.error();
  };
  CHECK(with("false") ==
        "'MODEL': has no KV scales, though 'MODEL/config.json' says that the cache is FP8: a "
        "runtime would use 1");
  CHECK(with("true") == "'MODEL': has no KV scales");
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
