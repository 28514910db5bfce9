#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/families/tensor_table.h"
#include "core/numbers/host_view.h"
#include "model/weights/weights.h"
#include "support/models/fused_tensors.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

// Makes tensors on request, and notes the requested names.
struct Store {
  std::map<std::string, std::vector<float>> values;
  Strings asked;

  FoundTensor find(const ModelTensor& tensor) {
    asked.push_back(tensor.name);
    std::vector<float>& made = values[tensor.name];
    made.resize(static_cast<size_t>(tensor.shape.elements()));
    return {host_view(made, tensor.shape)};
  }
  WeightSource source() {
    return {[&](const ModelTensor& tensor) { return find(tensor); }, {}, nullptr};
  }
};

// Rows of a tensor of this shape, each filled with its own number.
std::vector<float> numbered_rows(const Shape& shape) {
  std::vector<float> values;
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t i = 0; i < shape.elements() / shape[0]; ++i) {
      values.push_back(static_cast<float>(row));
    }
  }
  return values;
}

// Q, K and V in one tensor of this layout. The value of an element is its row.
struct Arranged {
  ModelConfig config = test::model_of(test::tiny_config());
  std::unique_ptr<Backend> backend = make_cpu_backend(2);
  std::map<std::string, std::vector<float>> values;
  std::vector<Tensor> rooms;
  std::vector<TensorRow> rows;
  LayerWeights layer;

  explicit Arranged(TensorLayout layout)
      : Arranged({"layers.{}.qkv", {TensorRole::q, TensorRole::k, TensorRole::v}, layout}) {}
  explicit Arranged(const TensorRow& row) {
    rows = {row};
    config.tensors = rows;
    config.qkv_bias = config.mlp_bias = true;
    const auto find = [&](const ModelTensor& tensor) -> FoundTensor {
      std::vector<float>& made = values[tensor.name] = numbered_rows(tensor.shape);
      return {host_view(made, tensor.shape)};
    };
    const auto room = [&](DType dtype, const Shape& shape) {
      return rooms.emplace_back(backend->allocate(dtype, shape)).view();
    };
    layer = make_layer_weights(config, 0, LayerPart::whole, {find, room, {}, backend.get()});
  }
};

// The first column of a matrix.
std::vector<float> rows_of(const ConstTensorView& view) {
  std::vector<float> found;
  const int64_t width = view.shape.elements() / view.shape[0];
  for (int64_t i = 0; i < view.shape[0]; ++i) found.push_back(view.as<float>()[i * width]);
  return found;
}

// For each pair, the numbers [begin, end), one after another.
std::vector<float> numbers(std::initializer_list<std::pair<int, int>> ranges) {
  std::vector<float> all;
  for (const auto& [begin, end] : ranges) {
    for (int i = begin; i < end; ++i) all.push_back(static_cast<float>(i));
  }
  return all;
}

}  // namespace

TEST_CASE("weights: roles of one tensor are views of its rows, found once") {
  ModelConfig config = test::model_of(test::tiny_config());
  config.tensors = test::kFusedTensors;
  config.qkv_bias = true;
  Store store;
  const LayerWeights layer = make_layer_weights(config, 0, LayerPart::whole, store.source());
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

// Four query heads and two KV heads of 8 elements: 64 rows, 32 per KV head.
TEST_CASE("weights: rows that lie by KV head are sorted into Q, K and V") {
  const Arranged model(TensorLayout::by_kv_head);
  const auto& [q, k, v, norms] = model.layer.attn;
  CHECK(rows_of(q.weight) == numbers({{0, 16}, {32, 48}}));
  CHECK(rows_of(k.weight) == numbers({{16, 24}, {48, 56}}));
  CHECK(rows_of(v.weight) == numbers({{24, 32}, {56, 64}}));
  CHECK(q.weight.shape == Shape{32, 32});
  CHECK(v.weight.as<float>()[15 * 32 + 31] == 63);
  CHECK(rows_of(*q.bias) == rows_of(q.weight));
  CHECK(rows_of(*v.bias) == rows_of(v.weight));
}

TEST_CASE("weights: a transposed tensor is turned, its bias not") {
  const Arranged model(TensorLayout::transposed);
  const auto& [q, k, v, norms] = model.layer.attn;
  CHECK(layer_tensors(model.config, 0).front().shape == Shape{32, 64});
  CHECK(k.weight.shape == Shape{16, 32});
  for (int64_t i = 0; i < 32; ++i) CHECK(k.weight.as<float>()[i] == static_cast<float>(i));
  CHECK(rows_of(*k.bias) == numbers({{32, 48}}));
}

// 48 rows each for gate and up, with 32 columns.
TEST_CASE("weights: rows of gate and up in turn are sorted, as are columns, and both biases") {
  std::vector<float> even, odd;
  for (int i = 0; i < 48; ++i) {
    even.push_back(static_cast<float>(2 * i));
    odd.push_back(static_cast<float>(2 * i + 1));
  }
  for (const TensorLayout layout : {TensorLayout::in_turn, TensorLayout::columns_in_turn}) {
    const bool turned = layout == TensorLayout::columns_in_turn;
    CAPTURE(turned);
    const Arranged model(
        TensorRow{"layers.{}.gate_up", {TensorRole::gate, TensorRole::up}, layout});
    const LayerWeights& layer = model.layer;
    CHECK(layer_tensors(model.config, 0).front().shape == (turned ? Shape{32, 96} : Shape{96, 32}));
    CHECK(layer.gate->weight.shape == Shape{48, 32});
    CHECK(layer.up.weight.shape == Shape{48, 32});
    if (turned) {  // the columns that products take are numbered
      for (int64_t i = 0; i < 32; ++i)
        CHECK(layer.up.weight.as<float>()[i] == static_cast<float>(i));
    } else {
      CHECK(rows_of(layer.gate->weight) == even);
      CHECK(rows_of(layer.up.weight) == odd);
    }
    CHECK(rows_of(*layer.gate->bias) == even);
    CHECK(rows_of(*layer.up.bias) == odd);
  }
}

TEST_CASE("weights: of the last layer of a calibration only what K and V need") {
  const ModelConfig config = test::model_of(test::tiny_config());
  Store store;
  static_cast<void>(make_layer_weights(config, 0, LayerPart::up_to_kv, store.source()));
  CHECK(store.asked == Strings{"model.layers.0.input_layernorm.weight",
                               "model.layers.0.self_attn.q_proj.weight",
                               "model.layers.0.self_attn.k_proj.weight",
                               "model.layers.0.self_attn.v_proj.weight"});
}

}  // namespace fp8kv
