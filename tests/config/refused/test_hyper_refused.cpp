// Keys of families with hyper-connections that are refused, since they would be computed wrongly or
// runtimes differ in them.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/family_model.h"

namespace fp8kv {

using test::refusal_of_family;

TEST_CASE("families: what runtimes compute in a HunYuan 4, whatever the config says") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("hy-v4", key, value);
  };
  for (const char* key : {"enable_ihc", "gated_mla", "learnable_sink", "norm_topk_prob"}) {
    CHECK(refused(key, "false") ==
          std::string("config.json: ") + key + ": is false: a model without it is not supported");
  }
  CHECK(refused("gating_type", R"("headwise")") ==
        "config.json: gating_type: is \"headwise\", expected 'elementwise': no other gate of "
        "attention of this architecture is supported");
  CHECK(refused("soft_logits_capping", "true") ==
        "config.json: soft_logits_capping: is true: a cap of the logits is not supported");
  CHECK(refused("attention_bias", "true") ==
        "config.json: attention_bias: is true: a bias of attention's products is not supported");
  for (const char* key : {"n_group", "topk_group"}) {
    CHECK(refused(key, "2") == std::string("config.json: ") + key +
                                   ": is 2, expected 1: vLLM chooses among all experts whatever "
                                   "this says");
  }
  for (const char* key : {"layer_types", "mlp_layer_types", "q_lora_rank"}) {
    CHECK(refused(key, "null") == std::string("config.json: the key '") + key + "' is null");
  }
  CHECK(refused("swiglu_limit", "0") ==
        "config.json: swiglu_limit: is 0, expected a number above 0: transformers clamps to it, "
        "and vLLM does not clamp");
  CHECK(refused("hc_mult", "9") == "config.json: hc_mult: is 9, expected 2 to 8");
  CHECK(refused("rope_scaling", R"({"rope_type": "linear", "factor": 2.0})") ==
        "config.json: scales its rope: transformers multiplies scores by the mscale of a yarn in "
        "this architecture, and vLLM does not");
  CHECK(
      refused("layer_types",
              R"(["deepseek_sparse_attention", "full_attention", "deepseek_sparse_attention"])") ==
      "config.json: layer_types[1]: is \"full_attention\": transformers chooses tokens in "
      "every layer, and vLLM in other layers alone");
}

TEST_CASE("families: a HunYuan 4 with images rotates all its angles by positions of text") {
  const auto refused = [](const std::string& rope) {
    JsonWriter text;
    text.value(test::family_golden("hy-v4-vision-seven").at("config").at("text_config"));
    return refusal_of_family("hy-v4-vision-seven", "text_config",
                             json_with_member(text.text(), "rope_parameters", rope));
  };
  const std::string expected = ", expected three numbers whose sum is 3, half of qk_rope_head_dim";
  CHECK(refused(R"({"rope_type": "default", "rope_theta": 500.0})") ==
        "config.json: text_config: mrope_section would be [12, 10, 10]" + expected);
  for (const std::string parts : {"[1, 2]", "[1, 1, 2]"}) {
    CHECK(refused(R"({"rope_theta": 500.0, "mrope_section": )" + parts + "}")
              .ends_with(": mrope_section is " + parts + expected));
  }
}

}  // namespace fp8kv
