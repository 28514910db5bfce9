// Values of config.json that MiMo V2, Laguna, DeciLM, Step and MiniMax M3 do not compute, refused
// by key.
#include <string>

#include <doctest/doctest.h>

#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::refusal_of_family;

// The config of a MiniMax M3 with another member of its language model.
std::string m3_with(const char* golden, const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(test::family_golden(golden).at("config").at("text_config"));
  return test::family_with(golden, "text_config", json_with_member(text.text(), key, value));
}

}  // namespace

TEST_CASE("MiMo V2: keys that only some runtimes read have the numbers of the others") {
  CHECK(refusal_of_family("mimo-v2", "rope_theta", "10000.0") ==
        "config.json: rope_theta: is 10000.0, expected 5000000, which transformers takes whatever "
        "this key says");
  CHECK(refusal_of_family("mimo-v2", "partial_rotary_factor", "0.5") ==
        "config.json: partial_rotary_factor: is 0.5, expected 0.334, which transformers takes "
        "whatever this key says");
  CHECK(refusal_of_family("mimo-v2", "swa_num_key_value_heads", "2") ==
        "config.json: swa_num_key_value_heads: is 2, expected 4, which transformers takes whatever "
        "this key says");
  CHECK(refusal_of_family("mimo-v2", "swa_v_head_dim", "12") ==
        "config.json: swa_v_head_dim: is 12, expected 8, which transformers takes whatever this "
        "key says");
  CHECK(refusal_of_family("mimo-v2", "layernorm_epsilon", "0.02") ==
        "config.json: layernorm_epsilon: is 0.02, expected 1e-05, which transformers takes "
        "whatever this key says");
}

TEST_CASE("MiMo V2: a rope that scales says which part of a head rotates") {
  CHECK(refusal_of_family(
            "mimo-v2-seven", "rope_parameters",
            R"({"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})") ==
        "config.json: rope_parameters.full_attention: is a rope of type \"linear\" without a "
        "partial_rotary_factor, expected one: transformers takes 1, and 0.334 for \"default\" "
        "alone");
}

TEST_CASE("MiMo V2: lists of layers that transformers ignores agree with what it takes") {
  CHECK(refusal_of_family("mimo-v2", "hybrid_layer_pattern", "[0, 1, 0, 1]") ==
        "config.json: hybrid_layer_pattern[2]: is 0, expected 1 like transformers, which does not "
        "read this list");
  CHECK(refusal_of_family("mimo-v2-seven", "layer_types", "null") ==
        "config.json: the key 'hybrid_layer_pattern' is missing");
  CHECK(refusal_of_family("mimo-v2", "layer_types", "[]") ==
        "config.json: layer_types: is [], expected an array of 4 layer types");
  CHECK(refusal_of_family("mimo-v2", "moe_layer_freq", "[1, 1, 1, 1]") ==
        "config.json: moe_layer_freq[0]: is 1, expected 0 like transformers, which does not read "
        "this list");
  CHECK(refusal_of_family("mimo-v2", "moe_layer_freq", "1") ==
        "config.json: moe_layer_freq: is 1, expected an array of 4 numbers");
}

TEST_CASE("MiMo V2: sinks are in layers with a window, and V has a scale") {
  CHECK(refusal_of_family("mimo-v2", "add_full_attention_sink_bias", "true") ==
        "config.json: add_full_attention_sink_bias: is true, expected false: just the layers with "
        "a window have sinks");
  CHECK(refusal_of_family("mimo-v2", "add_swa_attention_sink_bias", "false") ==
        "config.json: add_swa_attention_sink_bias: is false, expected true: just the layers with a "
        "window have sinks");
  CHECK(refusal_of_family("mimo-v2", "n_shared_experts", "1") ==
        "config.json: n_shared_experts: is 1, expected null: this architecture has no shared "
        "expert");
  CHECK(refusal_of_family("mimo-v2", "v_head_dim", "16") ==
        "config.json: v_head_dim: is 16, but MiMoV2FlashForCausalLM has heads of the same size for "
        "K and V");
}

TEST_CASE("MiMo V2.5: its own keys, and layers with a window like the others") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("mimo-v2.5", key, value);
  };
  for (const char* key : {"moe_layer_freq", "partial_rotary_factor", "rope_theta", "swa_rope_theta",
                          "swa_num_key_value_heads", "layernorm_epsilon", "swa_head_dim"}) {
    CAPTURE(key);
    const std::string what = refused(key, "null");
    CAPTURE(what);
    CHECK(what.find(key) != std::string::npos);
  }
  CHECK(refusal_of_family("mimo-v2.5-split", "hybrid_layer_pattern", "null") ==
        "config.json: the key 'hybrid_layer_pattern' is null");
  CHECK(refused("moe_layer_freq", "[0, 1]") ==
        "config.json: moe_layer_freq: is [0, 1], expected an array of 4 numbers");
  CHECK(refused("hybrid_block_size", "6") ==
        "config.json: hybrid_block_size: is 6, expected null in this architecture");
  CHECK(refused("swa_num_attention_heads", "8") ==
        "config.json: swa_num_attention_heads: is 8, expected 4 like num_attention_heads: other "
        "sizes in layers with a window are not supported");
  CHECK(refused("attention_projection_layout", "\"by_head\"") ==
        "config.json: attention_projection_layout: is 'by_head', expected \"fused_qkv\" or "
        "\"split\"");
}

TEST_CASE("MiMo V2: K and V of different sizes fit caches of elements alone") {
  const ModelConfig config = test::FamilyModel("mimo-v2").config;
  for (const KvFormat format : {KvFormat::e4m3fn, KvFormat::e5m2, KvFormat::bf16}) {
    CHECK(can_hold(config, format));
  }
  const auto misfit = cache_misfit(config, 1, KvFormat::int8_per_token_head);
  REQUIRE(misfit);
  CHECK(misfit->found == "layer 1 caches K of 12 elements and V of 8");
  CHECK(misfit->expected == "heads of one size for this format");
  CHECK_FALSE(can_hold(test::FamilyModel("mimo-v2").config, KvFormat::nvfp4));
  CHECK(can_hold(test::FamilyModel("laguna").config, KvFormat::int8_per_token_head));
}

TEST_CASE("Laguna: query heads by layer, and a rope in rope_parameters alone") {
  CHECK(refusal_of_family("laguna", "num_attention_heads_per_layer", "[6, 4, 6]") ==
        "config.json: num_attention_heads_per_layer: is [6, 4, 6], expected an array of 4 numbers");
  CHECK(refusal_of_family("laguna", "num_attention_heads_per_layer", "[6, 4, 5, 2]") ==
        "config.json: num_attention_heads_per_layer[2]: is 5, which gives layer 2 5 heads, "
        "expected a multiple of its 2 KV heads");
  CHECK(refusal_of_family("laguna", "gating", "false") ==
        "config.json: gating: is false, expected true, 'per-head' or 'per-element'");
  CHECK(refusal_of_family("laguna", "moe_router_logit_softcapping", "2.5") ==
        "config.json: moe_router_logit_softcapping: is 2.5, expected 0: a cap of the router's "
        "logits is not supported");
  CHECK(refusal_of_family("laguna", "swa_rope_parameters", R"({"rope_theta": 20.0})") ==
        "config.json: swa_rope_parameters: is {\"rope_theta\": 20.0}, expected null: transformers "
        "ignores it here. Write rope_parameters with an object for 'full_attention' and one for "
        "'sliding_attention'");
}

TEST_CASE("Step: lists have an entry for each layer, and layers of a kind one rotation") {
  CHECK(refusal_of_family("step3.5", "rope_theta", "[500.0, 20.0, 21.0, 500.0, 20.0]") ==
        "config.json: rope_theta[2]: is 21.0, expected 20.0 like in config.json: rope_theta[1]: "
        "layers of a kind have one rotation");
  CHECK(refusal_of_family("step3.5", "partial_rotary_factors", "[0.5, 1.0]") ==
        "config.json: partial_rotary_factors: has 2 numbers, expected one for each of 4 layers");
  CHECK(refusal_of_family("step3.5", "yarn_only_types", "[]") ==
        "config.json: yarn_only_types: is [], expected ['full_attention']: transformers scales the "
        "rotation of no other layers");
  CHECK(refusal_of_family("step3.5", "swiglu_limits", "[0.5]") ==
        "config.json: swiglu_limits: is [0.5], expected an array of 4 numbers");
  CHECK(refusal_of_family("step3.5", "swiglu_limits", "7.0") ==
        "config.json: swiglu_limits: is 7.0, expected an array of 4 numbers");
  CHECK(refusal_of_family("step3.5", "swiglu_limits", "[0.5, -1, 0, 0]") ==
        "config.json: swiglu_limits[1]: is -1, expected a positive number");
  CHECK(refusal_of_family("step3.5", "use_rope_layers", "[1, 1, 0, 1]") ==
        "config.json: use_rope_layers[2]: is 0, expected true: transformers rotates every layer");
}

TEST_CASE("Step: runtimes agree on experts and on heads of layers with a window") {
  CHECK(refusal_of_family("step3.5", "moe_layers_enum", R"("1,2,x")") ==
        "config.json: moe_layers_enum: is \"1,2,x\", expected layer numbers between commas");
  CHECK(refusal_of_family("step3.5", "moe_layers_enum", "null") ==
        "config.json: the key 'moe_layers_enum' is null");
  CHECK(refusal_of_family("step3.5", "mlp_layer_types",
                          R"(["dense", "sparse", "dense", "sparse", "dense"])") ==
        "config.json: mlp_layer_types[2]: is \"dense\", but moe_layers_enum makes it 'sparse', "
        "which is what vLLM reads");
  CHECK(refusal_of_family("step3.5", "attention_other_setting",
                          R"({"num_attention_heads": 6, "num_attention_groups": 3})") ==
        "config.json: num_attention_groups: is 2, but config.json: "
        "attention_other_setting.num_attention_groups is 3");
  CHECK(
      refusal_of_family("step3.5", "attention_other_setting", R"({"num_attention_heads": 5})") ==
      "config.json: per_layer_config: is {\"1\": {\"num_attention_heads\": 5}, \"2\": "
      "{\"num_attention_heads\": 5}}, which gives layer 1 5 heads, expected a multiple of its 2 KV "
      "heads");
  CHECK(refusal_of_family("step3.5", "moe_router_activation", R"("softmax")") ==
        "config.json: moe_router_activation: is \"softmax\", expected 'sigmoid': no other router "
        "of this architecture is supported");
  CHECK(refusal_of_family("step3.5", "zero_centered", "false") ==
        "config.json: zero_centered: is false: a model without it is not supported");
  CHECK(refusal_of_family("step3.5", "sink", "true") ==
        "config.json: sink: is true: a sink of attention is not supported");
}

TEST_CASE("Step and MiniMax M3: keys for which runtimes have other defaults are there") {
  CHECK(refusal_of_family("step3.5", "rope_theta", "null") ==
        "config.json: the key 'rope_theta' is null");
  CHECK(refusal_of_family("step3.5-full", "layer_types", "null") ==
        "config.json: the key 'layer_types' is null");
  CHECK(refusal_of_family("step3.5-full", "num_attention_groups", "null") ==
        "config.json: the key 'num_key_value_heads' is null");
  const auto refused = [](const std::string& key, const std::string& value) {
    return test::error_of_config(m3_with("minimax-m3", key, value));
  };
  CHECK(refused("num_key_value_heads", "null") ==
        "config.json: text_config: the key 'num_key_value_heads' is null");
  CHECK(refused("moe_layer_freq", "null") ==
        "config.json: text_config: the key 'moe_layer_freq' is null");
  CHECK(refused("sparse_attention_config", "null") ==
        "config.json: text_config: the key 'sparse_attention_config' is null");
}

TEST_CASE("MiniMax M3: keys that transformers or vLLM takes for granted") {
  const auto refused = [](const std::string& key, const std::string& value) {
    return test::error_of_config(m3_with("minimax-m3", key, value));
  };
  const std::string text = "config.json: text_config.";
  CHECK(refused("rotary_dim", "8") ==
        text +
            "rotary_dim: is 8, expected 6 by partial_rotary_factor, which is what transformers "
            "and vLLM read");
  CHECK(refused("partial_rotary_factor", "null") ==
        "config.json: text_config: the key 'partial_rotary_factor' is null");
  CHECK(refused("attention_output_gate", "true") ==
        text + "attention_output_gate: is true: a gate of attention's output is not supported");
  CHECK(refused("use_gemma_norm", "false") ==
        text + "use_gemma_norm: is false: a model without it is not supported");
  CHECK(refused("qk_norm_type", R"("per_layer")") ==
        text +
            "qk_norm_type: is \"per_layer\", expected 'per_head': no other norm of Q and K of "
            "this architecture is supported");
  CHECK(refused("swiglu_beta", "0") ==
        text + "swiglu_beta: is 0, expected 1, which transformers takes whatever this key says");
  CHECK(refused("n_shared_experts", "2") ==
        text +
            "n_shared_experts: is 2, expected 1, which transformers takes whatever this key "
            "says");
}

TEST_CASE("MiniMax M3: an indexer fits its attention, and says which layers have it") {
  const auto refused = [](const std::string& key, const std::string& value) {
    return test::error_of_config(m3_with("minimax-m3-seven", key, value));
  };
  const std::string indexer = "config.json: text_config: the indexer has ";
  CHECK(refused("index_n_heads", "2") ==
        indexer + "index_n_heads 2, expected 1, as many as there are KV heads");
  CHECK(refused("index_head_dim", "4") ==
        indexer + "index_head_dim 4, expected an even number above the 4 elements that rotate");
  CHECK(refused("index_local_blocks", "4") ==
        indexer + "index_local_blocks 4, expected at most index_topk_blocks, which is 3");
  CHECK(refused("sparse_attention_config", R"({"sparse_attention_freq": [1, 1, 1]})") ==
        "config.json: text_config.sparse_attention_config.sparse_attention_freq[1]: is 1, but "
        "layer_types says otherwise");
  CHECK(refused("sparse_attention_config", R"({"sparse_block_size": 4})") ==
        "config.json: text_config.index_block_size: is 5, but config.json: "
        "text_config.sparse_attention_config.sparse_block_size is 4");
  CHECK(refused("sparse_attention_config", R"({"use_sparse_attention": false})") ==
        "config.json: text_config.sparse_attention_config.use_sparse_attention: is false, expected "
        "true: transformers goes by the layers that have an indexer");
  CHECK(refused("sparse_attention_config", R"({"sparse_init_block": 1})") ==
        "config.json: text_config.sparse_attention_config.sparse_init_block: is 1, expected 0, "
        "which transformers takes whatever this key says");
  // It would see every token: the model is computed without one.
  const ModelConfig all = parse_model_config(
      Json::parse(m3_with("minimax-m3-seven", "index_topk_blocks", "64"), "config.json"));
  CHECK_FALSE(all.indexer);
}

TEST_CASE("MiniMax M3: layers with an indexer fit caches of elements and NVFP4, as in vLLM") {
  const ModelConfig config = test::FamilyModel("minimax-m3").config;
  for (const KvFormat format : {KvFormat::e4m3fn, KvFormat::e5m2, KvFormat::bf16}) {
    CHECK(can_hold(config, format));
  }
  CHECK_FALSE(cache_misfit(config, 0, KvFormat::int8_per_token_head));
  const auto misfit = cache_misfit(config, 1, KvFormat::int8_per_token_head);
  REQUIRE(misfit);
  CHECK(misfit->found == "layer 1 attends to blocks that an indexer chooses");
  CHECK(misfit->expected == "attention to every token for this format");
  CHECK(config.layer(0).most_seen == 0);
  CHECK(config.layer(1).most_seen == 12);
}

TEST_CASE("DeciLM: each layer's entry of block_configs has parts that runtimes compute") {
  const auto refused = [](const std::string& attention, const std::string& ffn) {
    const std::string plain = R"({"attention": {"n_heads_in_group": 7}, "ffn": {"ffn_mult": 1.0}})";
    return refusal_of_family("deci-seven", "block_configs",
                             "[" + plain + R"(, {"attention": {)" + attention + R"(}, "ffn": {)" +
                                 ffn + "}}, " + plain + "]");
  };
  const std::string group = R"("n_heads_in_group": 7)", width = R"("intermediate_size": 40)";
  CHECK(refused(R"("n_heads_in_group": 2)", width) ==
        "config.json: block_configs[1].attention.n_heads_in_group: is 2, expected a number that "
        "divides 7 heads");
  CHECK(refused(R"("no_op": false)", width) ==
        "config.json: block_configs[1].attention: the key 'n_heads_in_group' is missing");
  CHECK(refused(group + R"(, "replace_with_linear": true)", width) ==
        "config.json: block_configs[1].attention.replace_with_linear: is true, expected null or "
        "false: runtimes do not compute it");
  CHECK(refused(group + R"(, "window_length": 8192)", width) ==
        "config.json: block_configs[1].attention.window_length: is 8192, expected null or false: "
        "runtimes do not compute it");
  CHECK(refused(group, R"("no_op": false)") ==
        "config.json: block_configs[1].ffn: the key 'intermediate_size' is missing");
  CHECK(refused(group, width + R"(, "hidden_act": "gelu")") ==
        "config.json: block_configs[1].ffn.hidden_act: is \"gelu\", expected \"silu\"");
  CHECK(refused(group, R"("ffn_mult": 1e12)") ==
        "config.json: block_configs[1].ffn.ffn_mult: makes the feed-forward part 2.8e+13 wide, "
        "expected 1 to 268435456");
  CHECK(refusal_of_family("deci-seven", "block_configs", "[]") ==
        "config.json: block_configs: is [], expected an array of 3 objects");
  CHECK(refusal_of_family("deci-seven", "position_embedding_type", R"("rope_llama4")") ==
        "config.json: position_embedding_type: is 'rope_llama4', expected 'rope': no other "
        "rotation of this architecture is supported");
}

}  // namespace fp8kv
