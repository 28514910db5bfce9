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
  missing.config("num_hidden_layers", "4096");
  CHECK(missing.error() ==
        "'MODEL': has KV scales for 1 layer, but none for layers 1, 2, 3, 4 and "
        "4,091 others");
  missing.config("num_hidden_layers", "2").config("block_types", "[0]");
  CHECK(missing.error() ==
        "'MODEL': has KV scales for 1 layer, but none for layer 1, and which layers of the model "
        "write a KV cache is not known: 'MODEL/config.json': block_types: which layers hold "
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

TEST_CASE("dialects: KV scales of a form that is not read are an error, never 'no scales'") {
  for (const std::string name :
       {"transformer.layers.0.attention.kv_cache_scaling_factor",
        "transformer.stages.0.attn.kv_scale", "model.layers.00.self_attn.kv_scale",
        "model.layers.-1.self_attn.kv_scale", "model.layers.0.self_attn.k_scales",
        "model.layers.0.self_attn.qkv_proj.output_scale"}) {
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

TEST_CASE("dialects: layers in two forms are refused, also beside duplicates") {
  ScaledModel model;
  for (const char* kind : {"attn.k_scale", "attn.v_scale"})
    model.layer(0, kind, 1).layer(1, kind, 1);
  model.layer(0, "k_scale", 1).layer(0, "v_scale", 1);
  CHECK(model.error() ==
        "'MODEL': 'model.layers.0.self_attn.k_scale' is a name of k_scale/v_scale, "
        "'model.layers.1.self_attn.attn.k_scale' one of vllm-parameters: expected one form");
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

}  // namespace
}  // namespace fp8kv
