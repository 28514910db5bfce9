// Values of config.json that families of src/config/families/rows do not compute, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

// Reads a golden's config with one member set to a JSON value, and returns the refusal.
std::string refusal(const char* golden, const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(test::family_golden(golden).at("config"));
  return test::error_of_config(json_with_member(text.text(), key, value));
}

// A rope of Mistral 4 with other members.
std::string mistral4_rope(const std::string& members) {
  return R"({"rope_theta": 30.0, "factor": 4.0, "original_max_position_embeddings": 16, )" +
         members + "}";
}

}  // namespace

TEST_CASE("families: a Mistral 4 needs a yarn in rope_parameters, and experts without groups") {
  CHECK(refusal("mistral4", "rope_parameters", "null") ==
        "config.json: the key 'rope_parameters' is null");
  CHECK(
      refusal("mistral4", "rope_parameters",
              mistral4_rope(R"("rope_type": "linear", "llama_4_scaling_beta": 0.1)")) ==
      "config.json: rope_parameters.rope_type: is \"linear\", expected \"yarn\": no other rope of "
      "this architecture is supported");
  CHECK(refusal("mistral4", "rope_parameters", mistral4_rope(R"("rope_type": "yarn")")) ==
        "config.json: rope_parameters: the key 'llama_4_scaling_beta' is missing");
  CHECK(refusal("mistral4", "rope_parameters",
                mistral4_rope(R"("rope_type": "yarn", "llama_4_scaling_beta": 0.1,
                                 "partial_rotary_factor": 0.5)")) ==
        "config.json: rope_parameters.partial_rotary_factor: is 0.5, which is 8 of the 16 elements "
        "of a head, expected 6, as many as qk_rope_head_dim");
  CHECK(refusal("mistral4", "n_group", "4") ==
        "config.json: n_group: is 4, expected 1: groups of experts by their two largest softmaxes "
        "are not supported");
  CHECK(refusal("mistral4", "rope_scaling", R"({"factor": 4.0})") ==
        "config.json: rope_scaling: is {\"factor\": 4.0}, expected null: transformers reads "
        "rope_parameters here");
}

TEST_CASE("families: multipliers of a MiniCPM 3 have to be numbers") {
  CHECK(refusal("minicpm3", "scale_depth", "null") == "config.json: the key 'scale_depth' is null");
  CHECK(refusal("minicpm3", "dim_model_base", "0") ==
        "config.json: dim_model_base: is 0, expected a positive number");
}

TEST_CASE("families: routers of Sarvam are those of DeepSeek V3") {
  for (const char* golden : {"sarvam-moe", "sarvam-mla"}) {
    CHECK(
        refusal(golden, "score_function", "\"softmax\"") ==
        "config.json: score_function: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
    CHECK(refusal(golden, "moe_router_enable_expert_bias", "false") ==
          "config.json: moe_router_enable_expert_bias: is false, expected true: transformers adds "
          "the bias of the choice");
    CHECK(refusal(golden, "n_routed_experts", "4") ==
          "config.json: n_routed_experts: is 4, but config.json: num_experts is 6");
  }
  CHECK(refusal("sarvam-moe", "attention_bias", "true") ==
        "config.json: attention_bias: is true, but config.json: use_qkv_bias is false");
  CHECK(refusal("sarvam-moe", "head_dim", "null") == "config.json: the key 'head_dim' is null");
}

TEST_CASE("families: a Command A with experts needs the types of its layers") {
  CHECK(refusal("cohere2-moe", "layer_types", "null") ==
        "config.json: the key 'layer_types' is null");
  CHECK(refusal("cohere2-moe", "rope_scaling", R"({"type": "linear", "factor": 2.0})") ==
        "config.json: rope_scaling: is {\"type\": \"linear\", \"factor\": 2.0}, expected null: "
        "transformers ignores it here. Write rope_parameters");
  CHECK(
      refusal("cohere2-moe", "expert_selection_fn", "\"topk\"") ==
      "config.json: expert_selection_fn: is \"topk\", expected 'sigmoid': no other router of this "
      "architecture is supported");
  CHECK(refusal("cohere2-moe", "shared_expert_combination_strategy", "\"max\"") ==
        "config.json: shared_expert_combination_strategy: is \"max\", expected 'sum': no other "
        "router of this architecture is supported");
  CHECK(refusal("cohere2-moe", "use_qk_norm", "true") ==
        "config.json: use_qk_norm: is true: a norm of Q and K in this architecture is not "
        "supported");
}

TEST_CASE("families: a Gemma 4 Unified whose tokens see later ones is refused") {
  const Json config = test::family_golden("gemma4-unified").at("config");
  JsonWriter text;
  text.value(config.at("text_config"));
  const std::string inner = json_with_member(text.text(), "use_bidirectional_attention", "\"all\"");
  CHECK(
      refusal("gemma4-unified", "text_config", inner) ==
      "config.json: text_config.use_bidirectional_attention: is a string (\"all\"), expected true "
      "or false");
}

}  // namespace fp8kv
