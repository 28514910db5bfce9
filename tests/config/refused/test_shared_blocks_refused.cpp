// Values of config.json that DiffLlama and Zamba 2 do not compute, or that runtimes read
// differently, refused by key. Also the layers of Zamba 2 that share a block.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/families/tensor_table.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

std::string zamba2_refusal(const char* key, const char* value) {
  return test::refusal_of_family("zamba2", key, value);
}

}  // namespace

TEST_CASE("Zamba 2: values of keys that runtimes read differently") {
  CHECK(zamba2_refusal("tie_word_embeddings", "false") ==
        "config.json: tie_word_embeddings: is false, expected true: else transformers shares no "
        "block between layers");
  CHECK(zamba2_refusal("use_conv_bias", "false") ==
        "config.json: use_conv_bias: is false, expected true: runtimes differ in whether they read "
        "it");
  CHECK(zamba2_refusal("time_step_min", "0.01") ==
        "config.json: time_step_min: is 0.01, expected 0.001 or less: runtimes differ in whether "
        "they limit time steps by it");
  CHECK(zamba2_refusal("use_long_context", "true").find("use_long_context") != std::string::npos);
  CHECK(zamba2_refusal("num_key_value_heads", "2") ==
        "config.json: num_key_value_heads: is 2, expected 4: adapters of K and V are as wide as "
        "those of Q");
  CHECK(zamba2_refusal("hybrid_layer_ids", "[3, 2, 0]") ==
        "config.json: hybrid_layer_ids: is [3, 2, 0], expected the hybrid layers of "
        "layers_block_type");
  CHECK(zamba2_refusal("layers_block_type", "null").find("layers_block_type") != std::string::npos);
  CHECK(zamba2_refusal("layers_block_type", R"(["mamba", "mamba", "mamba", "mamba"])") ==
        "config.json: layers_block_type: gives no layer attention, so that there is no KV cache");
}

TEST_CASE("Zamba 2: hybrid layers have a cache and a state, others a state alone") {
  const ModelDescription model = describe_model(test::family_golden("zamba2").at("config"));
  CHECK(model.attends(0));
  CHECK(model.keeps_state(0));
  CHECK_FALSE(model.attends(1));
  CHECK(model.layer(0).k_head_dim == 16);
  CHECK(model.layer(0).n_kv_heads == 4);
  // 4 heads of 6 x 16, and 3 tokens of 64 + 2 * 2 * 6 channels in 16 bits.
  CHECK(model.layer(1).state_bytes == 4 * 6 * 16 * 4 + 3 * (64 + 2 * 2 * 6) * 2);
}

TEST_CASE("Zamba 2: the third hybrid layer uses the first block again, with its own adapters") {
  const ModelConfig config =
      parse_model_config(Json::parse(test::family_with("zamba2", "chunk_size", "256"), "x"));
  CHECK(config.block_use(3) == 2);
  CHECK(config.block_layer(3) == 0);
  CHECK(config.block_layer(2) == 2);
  CHECK(weight_name(config, TensorRole::k, 3) ==
        "model.layers.0.shared_transformer.self_attn.k_proj.weight");
  CHECK(weight_name(config, TensorRole::k_lora_up, 3) ==
        "model.layers.0.shared_transformer.self_attn.linear_k_adapter_list.2.1.weight");
  CHECK(weight_name(config, TensorRole::state_out, 3) ==
        "model.layers.3.mamba_decoder.mamba.out_proj.weight");
  CHECK(weight_name(config, TensorRole::state_out, 1) == "model.layers.1.mamba.out_proj.weight");
}

TEST_CASE("DiffLlama: an odd number of KV heads has no halves") {
  const auto refusal = [](const char* key, const char* value) {
    return test::refusal_of_family("diffllama", key, value);
  };
  const std::string why =
      ", expected an even number: differential attention takes one half of the heads from the "
      "other";
  CHECK(refusal("num_key_value_heads", "1") == "config.json: num_key_value_heads: is 1" + why);
  CHECK(test::refusal_of_family("diffllama-seven", "num_key_value_heads", "7") ==
        "config.json: num_key_value_heads: is 7" + why);
}

TEST_CASE("DiffLlama: as many KV heads as query heads by default, and a cache for each") {
  const ModelConfig config = parse_model_config(
      Json::parse(test::family_with("diffllama", "num_key_value_heads", "null"), "config.json"));
  CHECK(config.n_kv_heads() == 4);
  const ModelDescription model = describe_model(test::family_golden("diffllama").at("config"));
  CHECK(model.layer(1).n_kv_heads == 2);
  CHECK(model.layer(1).k_head_dim == 12);
}

}  // namespace fp8kv
