#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/tensor_table.h"
#include "model/weights.h"
#include "support/models/fused_tensors.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

// Tensors made for whoever asks, and the names that were asked for.
struct Store {
  std::map<std::string, std::vector<float>> values;
  Strings asked;

  ConstTensorView find(const ModelConfig& config, const std::string& name) {
    asked.push_back(name);
    for (const ModelTensor& tensor : layer_tensors(config, 0)) {
      if (tensor.name != name) continue;
      std::vector<float>& made = values[name];
      made.resize(static_cast<size_t>(tensor.shape.elements()));
      return {reinterpret_cast<const std::byte*>(made.data()), DType::f32, tensor.shape};
    }
    FAIL("not a tensor of the layer: ", name);
    return {};
  }
};

}  // namespace

TEST_CASE("weights: roles of one tensor are views of its rows, found once") {
  ModelConfig config = test::model_of(test::tiny_config());
  config.tensors = test::kFusedTensors;
  config.qkv_bias = true;
  Store store;
  const LayerWeights layer =
      make_layer_weights(config, 0, LayerPart::whole,
                         [&](const std::string& name) { return store.find(config, name); });
  CHECK(store.asked == test::names_of(layer_tensors(config, 0)));
  const float* qkv = store.values.at("layers.0.qkv_proj.weight").data();
  CHECK(layer.attn.q.weight.as<float>() == qkv);
  CHECK(layer.attn.k.weight.as<float>() == qkv + 32 * 32);
  CHECK(layer.attn.v.weight.as<float>() == qkv + 48 * 32);
  CHECK(layer.attn.v.weight.shape == Shape{16, 32});
  const float* bias = store.values.at("layers.0.qkv_proj.bias").data();
  CHECK(layer.attn.v.bias->as<float>() == bias + 48);
  CHECK(layer.up.weight.as<float>() ==
        store.values.at("layers.0.gate_up_proj.weight").data() + 48 * 32);
}

TEST_CASE("weights: of the last layer of a calibration only what K and V need") {
  const ModelConfig config = test::model_of(test::tiny_config());
  Store store;
  static_cast<void>(
      make_layer_weights(config, 0, LayerPart::up_to_kv,
                         [&](const std::string& name) { return store.find(config, name); }));
  CHECK(store.asked == Strings{"model.layers.0.input_layernorm.weight",
                               "model.layers.0.self_attn.q_proj.weight",
                               "model.layers.0.self_attn.k_proj.weight",
                               "model.layers.0.self_attn.v_proj.weight"});
}

}  // namespace fp8kv
