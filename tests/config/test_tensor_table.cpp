#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/families/tensor_table.h"
#include "support/models/fused_tensors.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("tensor table: a layer's tensors follow from the config's switches") {
  ModelConfig config = test::model_of(test::tiny_config());
  const size_t plain = layer_tensors(config, 1).size();
  CHECK(plain == 9);
  CHECK(layer_tensors(config, 1)[1].name == "model.layers.1.self_attn.q_proj.weight");
  CHECK(layer_tensors(config, 1)[1].shape == Shape{32, 32});
  CHECK(layer_tensors(config, 1)[2].shape == Shape{16, 32});
  config.qkv_bias = true;
  CHECK(layer_tensors(config, 1).size() == plain + 3);
  CHECK(layer_tensors(config, 1)[2].name == "model.layers.1.self_attn.q_proj.bias");
  CHECK(layer_tensors(config, 1)[2].shape == Shape{32});
  config.block.qk_norm = QkNorm::per_head;
  config.o_bias = true;
  config.mlp_bias = true;
  CHECK(layer_tensors(config, 1).size() == plain + 3 + 2 + 1 + 3);
}

TEST_CASE("tensor table: what belongs to no layer is listed once") {
  CHECK(test::names_of(outer_tensors(test::model_of(test::tiny_config()))) ==
        Strings{"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"});
}

TEST_CASE("tensor table: linear modules are the matrices but the embedding") {
  ModelConfig config = test::model_of(test::tiny_config());
  config.layers.resize(1);
  config.qkv_bias = true;
  config.block.qk_norm = QkNorm::per_head;
  CHECK(linear_modules(config) ==
        Strings{"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj",
                "model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.o_proj",
                "model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj",
                "model.layers.0.mlp.down_proj", "lm_head"});
}

TEST_CASE("tensor table: a tensor of several roles has the rows of each in turn") {
  ModelConfig config = test::model_of(test::tiny_config());
  config.tensors = test::kFusedTensors;
  config.qkv_bias = true;
  const std::vector<ModelTensor> tensors = layer_tensors(config, 0);
  CHECK(test::names_of(tensors) == Strings{"layers.0.qkv_proj.weight", "layers.0.qkv_proj.bias",
                                           "layers.0.o_proj.weight",
                                           "layers.0.gate_up_proj.weight"});
  CHECK(tensors[0].shape == Shape{32 + 16 + 16, 32});
  CHECK(tensors[1].shape == Shape{32 + 16 + 16});
  CHECK(tensors[3].shape == Shape{48 + 48, 32});
  CHECK(tensors[0].parts[2].first_row == 48);
  CHECK(tensors[0].parts[2].rows == 16);
  CHECK(weight_name(config, TensorRole::v, 3) == "layers.3.qkv_proj.weight");
}

}  // namespace fp8kv
