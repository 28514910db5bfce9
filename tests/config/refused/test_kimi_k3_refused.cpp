// Values of config.json that Kimi K3 and Muse Spark do not compute, or that runtimes read
// differently, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

// The text_config of a golden with another value of a key.
std::string late_text(const char* golden, const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(test::family_golden(golden).at("config").at("text_config"));
  return json_with_member(text.text(), key, value);
}

std::string late_refusal(const char* golden, const std::string& key, const std::string& value) {
  return test::refusal_of_family(golden, "text_config", late_text(golden, key, value));
}

std::string k3_refusal(const std::string& key, const std::string& value) {
  return late_refusal("kimi-k3", key, value);
}

// The refusal of a Kimi K3 with another member of linear_attn_config.
std::string k3_state_refusal(const std::string& key, const std::string& value) {
  JsonWriter linear;
  linear.value(
      test::family_golden("kimi-k3").at("config").at("text_config").at("linear_attn_config"));
  return k3_refusal("linear_attn_config", json_with_member(linear.text(), key, value));
}

ModelConfig k3_with(const std::string& key, const std::string& value) {
  const std::string text = late_text("kimi-k3", key, value);
  return parse_model_config(
      Json::parse(test::family_with("kimi-k3", "text_config", text), "config.json"));
}

bool late_names(const std::string& message, const std::string& key) {
  return message.find(key) != std::string::npos;
}

}  // namespace

TEST_CASE("Kimi K3: keys that must be there, or have one value") {
  for (const char* key :
       {"q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "linear_attn_config",
        "num_experts", "num_shared_experts", "moe_intermediate_size", "routed_scaling_factor",
        "activation_situ_beta", "activation_situ_linear_beta"}) {
    CAPTURE(std::string(key));
    CHECK(late_names(k3_refusal(key, "null"), key));
  }
  CHECK(k3_refusal("kv_lora_rank", "null") ==
        "config.json: text_config.v_head_dim: is 12, but KimiK3ForConditionalGeneration has heads "
        "of the same size for K and V");
  CHECK(k3_refusal("mla_use_nope", "false") ==
        "config.json: text_config.mla_use_nope: is false, expected true: latent attention does not "
        "rotate in this architecture");
  CHECK(late_names(k3_refusal("tie_word_embeddings", "true"), "tie_word_embeddings"));
  CHECK(late_names(k3_refusal("hidden_act", R"("gelu")"), "hidden_act"));
  CHECK(late_names(k3_refusal("moe_layer_freq", "2"), "moe_layer_freq"));
  CHECK(k3_state_refusal("use_full_rank_gate", "false") ==
        "config.json: text_config.linear_attn_config.use_full_rank_gate: is false, expected true: "
        "gates are made by one product here");
  CHECK(k3_state_refusal("gate_lower_bound", "0.5") ==
        "config.json: text_config.linear_attn_config.gate_lower_bound: is 0.5, expected a number "
        "below 0, and above -10,000");
}

TEST_CASE("Kimi K3: parts that a config leaves out, and blocks of attention residuals") {
  CHECK(k3_with("attn_res_block_size", "null").attn_res_block == 0);
  const ModelConfig one = k3_with("attn_res_block_size", "9");
  CHECK(one.attn_res_blocks(0) == 0);
  CHECK(one.attn_res_blocks(5) == 1);
  CHECK(one.stream_dim() == 2 * one.dim);
  const ModelConfig each = k3_with("attn_res_block_size", "1");
  CHECK(each.attn_res_blocks(3) == 3);
  CHECK(each.stream_dim() == 6 * each.dim);
  const ModelConfig wide = k3_with("routed_expert_hidden_size", "null");
  CHECK(wide.experts->inner_dim == 0);
  CHECK_FALSE(wide.experts->inner_out_norm);
  CHECK(k3_with("mla_use_output_gate", "false").block.attention_gate == AttentionGate::none);
  CHECK(late_names(k3_refusal("attn_res_block_size", "0"), "attn_res_block_size"));
}

TEST_CASE("Muse Spark: keys for which vLLM has no defaults, and parts that are not computed") {
  for (const char* key : {"layer_types", "layer_rope_theta", "mlp_layer_types", "qk_scale_factor",
                          "moe_hidden_size", "max_position_embeddings"}) {
    CAPTURE(std::string(key));
    CHECK(late_names(late_refusal("muse-spark", key, "null"), key));
  }
  CHECK(late_names(late_refusal("muse-spark", "num_shared_experts", "1"), "num_shared_experts"));
  CHECK(late_refusal("muse-spark", "layer_rope_theta", "[500.0, 20.0, 500.0, 0]") ==
        "config.json: text_config.layer_rope_theta[1]: is 20.0, expected 0 or 500, the base that "
        "runtimes take for all layers");
}

}  // namespace fp8kv
