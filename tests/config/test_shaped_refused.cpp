// Values of config.json that MiMo V2 and Laguna do not compute, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

std::string refusal_of(const char* golden, const std::string& key, const std::string& value) {
  return test::error_of_config(test::family_with(golden, key, value));
}

}  // namespace

TEST_CASE("MiMo V2: keys that only some runtimes read have the numbers of the others") {
  CHECK(refusal_of("mimo-v2", "rope_theta", "10000.0") ==
        "config.json: rope_theta: is 10000.0, expected 5000000, which transformers takes whatever "
        "this key says");
  CHECK(refusal_of("mimo-v2", "partial_rotary_factor", "0.5") ==
        "config.json: partial_rotary_factor: is 0.5, expected 0.334, which transformers takes "
        "whatever this key says");
  CHECK(refusal_of("mimo-v2", "swa_num_key_value_heads", "2") ==
        "config.json: swa_num_key_value_heads: is 2, expected 4, which transformers takes whatever "
        "this key says");
  CHECK(refusal_of("mimo-v2", "swa_v_head_dim", "12") ==
        "config.json: swa_v_head_dim: is 12, expected 8, which transformers takes whatever this "
        "key says");
  CHECK(refusal_of("mimo-v2", "layernorm_epsilon", "0.02") ==
        "config.json: layernorm_epsilon: is 0.02, expected 1e-05, which transformers takes "
        "whatever this key says");
}

TEST_CASE("MiMo V2: a rope that scales says which part of a head rotates") {
  CHECK(
      refusal_of("mimo-v2-seven", "rope_parameters",
                 R"({"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})") ==
      "config.json: rope_parameters.full_attention: is a rope of type \"linear\" without a "
      "partial_rotary_factor, expected one: transformers takes 1, and 0.334 for \"default\" "
      "alone");
}

TEST_CASE("MiMo V2: lists of layers that transformers ignores agree with what it takes") {
  CHECK(refusal_of("mimo-v2", "hybrid_layer_pattern", "[0, 1, 0, 1]") ==
        "config.json: hybrid_layer_pattern[2]: is 0, expected 1 like transformers, which does not "
        "read this list");
  CHECK(refusal_of("mimo-v2-seven", "layer_types", "null") ==
        "config.json: the key 'hybrid_layer_pattern' is missing");
  CHECK(refusal_of("mimo-v2", "layer_types", "[]") ==
        "config.json: layer_types: is [], expected an array of 4 layer types");
  CHECK(refusal_of("mimo-v2", "moe_layer_freq", "[1, 1, 1, 1]") ==
        "config.json: moe_layer_freq[0]: is 1, expected 0 like transformers, which does not read "
        "this list");
  CHECK(refusal_of("mimo-v2", "moe_layer_freq", "1") ==
        "config.json: moe_layer_freq: is 1, expected an array of 4 numbers");
}

TEST_CASE("MiMo V2: sinks are in layers with a window, and V has a scale") {
  CHECK(refusal_of("mimo-v2", "add_full_attention_sink_bias", "true") ==
        "config.json: add_full_attention_sink_bias: is true, expected false: just the layers with "
        "a window have sinks");
  CHECK(refusal_of("mimo-v2", "add_swa_attention_sink_bias", "false") ==
        "config.json: add_swa_attention_sink_bias: is false, expected true: just the layers with a "
        "window have sinks");
  CHECK(refusal_of("mimo-v2", "n_shared_experts", "1") ==
        "config.json: n_shared_experts: is 1, expected null: this architecture has no shared "
        "expert");
  CHECK(refusal_of("mimo-v2", "v_head_dim", "16") ==
        "config.json: v_head_dim: is 16, but MiMoV2FlashForCausalLM has heads of the same size for "
        "K and V");
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
  CHECK(refusal_of("laguna", "num_attention_heads_per_layer", "[6, 4, 6]") ==
        "config.json: num_attention_heads_per_layer: is [6, 4, 6], expected an array of 4 numbers");
  CHECK(refusal_of("laguna", "num_attention_heads_per_layer", "[6, 4, 5, 2]") ==
        "config.json: num_attention_heads_per_layer[2]: is 5, expected a multiple of the 2 KV "
        "heads");
  CHECK(refusal_of("laguna", "gating", "false") ==
        "config.json: gating: is false, expected true, 'per-head' or 'per-element'");
  CHECK(refusal_of("laguna", "moe_router_logit_softcapping", "2.5") ==
        "config.json: moe_router_logit_softcapping: is 2.5, expected 0: a cap of the router's "
        "logits is not supported");
  CHECK(refusal_of("laguna", "swa_rope_parameters", R"({"rope_theta": 20.0})") ==
        "config.json: swa_rope_parameters: is {\"rope_theta\": 20.0}, expected null: transformers "
        "ignores it here. Write rope_parameters with an object for 'full_attention' and one for "
        "'sliding_attention'");
}

TEST_CASE("DeciLM: each layer's entry of block_configs has parts that runtimes compute") {
  const auto refused = [](const std::string& attention, const std::string& ffn) {
    const std::string plain = R"({"attention": {"n_heads_in_group": 7}, "ffn": {"ffn_mult": 1.0}})";
    return refusal_of("deci-seven", "block_configs",
                      "[" + plain + R"(, {"attention": {)" + attention + R"(}, "ffn": {)" + ffn +
                          "}}, " + plain + "]");
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
  CHECK(refusal_of("deci-seven", "block_configs", "[]") ==
        "config.json: block_configs: is [], expected an array of 3 objects");
  CHECK(refusal_of("deci-seven", "position_embedding_type", R"("rope_llama4")") ==
        "config.json: position_embedding_type: is 'rope_llama4', expected 'rope': no other "
        "rotation of this architecture is supported");
}

}  // namespace fp8kv
