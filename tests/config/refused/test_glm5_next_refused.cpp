// Values of config.json that GLM-5 Next does not compute, or that runtimes read differently,
// refused by key; and which layers choose what.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

// The text_config of the golden with another value of a key.
std::string glm5_text(const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(test::family_golden("glm5-next").at("config").at("text_config"));
  return json_with_member(text.text(), key, value);
}

std::string glm5_refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("glm5-next", "text_config", glm5_text(key, value));
}

ModelConfig glm5_with(const std::string& key, const std::string& value) {
  return parse_model_config(Json::parse(
      test::family_with("glm5-next", "text_config", glm5_text(key, value)), "config.json"));
}

bool glm5_names(const std::string& message, const std::string& key) {
  return message.find(key) != std::string::npos;
}

}  // namespace

TEST_CASE("GLM-5 Next: keys that must be there, or have one value") {
  for (const char* key :
       {"q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
        "index_topk", "index_head_dim", "index_n_heads", "index_kpool", "linear_head_dim",
        "linear_num_heads", "linear_conv_kernel_dim", "mlp_layer_types", "n_routed_experts",
        "n_shared_experts", "moe_intermediate_size", "routed_scaling_factor"}) {
    CAPTURE(key);
    CHECK(glm5_names(glm5_refusal(key, "null"), key));
  }
  CHECK(glm5_refusal("qk_rope_head_dim", "6") ==
        "config.json: text_config.qk_rope_head_dim: is 6, expected 0: attention does not rotate in "
        "this architecture");
  CHECK(glm5_refusal("index_topk", "13") ==
        "config.json: text_config.index_topk: is 13, expected a multiple of index_kpool, which is "
        "4");
  CHECK(glm5_names(glm5_refusal("index_kpool", "1"), "index_kpool"));
  CHECK(glm5_names(glm5_refusal("index_head_dim", "9"), "is 9, expected an even number"));
  CHECK(glm5_names(glm5_refusal("index_kpool_always_select_tail", "false"), "is false"));
  CHECK(glm5_names(glm5_refusal("mla_use_nope", "false"), "mla_use_nope: is false"));
  CHECK(glm5_names(glm5_refusal("mhc", "false"), "mhc: is false"));
  CHECK(glm5_names(glm5_refusal("scoring_func", R"("softmax")"), "scoring_func"));
  CHECK(glm5_names(glm5_refusal("topk_method", R"("greedy")"), "topk_method"));
  CHECK(glm5_names(glm5_refusal("num_local_experts", "7"), "num_local_experts"));
  CHECK(glm5_names(glm5_refusal("linear_lower_bound", "1.0"), "linear_lower_bound"));
  CHECK(glm5_names(glm5_refusal("hc_mult", "9"), "hc_mult"));
}

TEST_CASE("GLM-5 Next: every layer with attention chooses by itself") {
  CHECK(glm5_names(glm5_refusal("indexer_types", R"(["full", "full", "full", "shared"])"),
                   "layer 3 has no indexer of its own"));
  CHECK(glm5_with("indexer_types", R"(["shared", "full", "shared", "full"])").indexer);
  CHECK_FALSE(glm5_with("index_topk", "64").indexer);
  const ModelConfig usual = glm5_with("layer_types", "null");
  for (int64_t i = 0; i < usual.n_layers(); ++i) CHECK(usual.attends(i) == (i == 3));
  const ModelDescription model = describe_model(test::family_golden("glm5-next").at("config"));
  CHECK(model.layer(1).v_in_k);
  CHECK(model.layer(1).k_head_dim == 24);
  CHECK(model.layer(1).own_k_dim() == 0);
  CHECK(model.layer(1).most_seen == 15);
}

TEST_CASE("GLM-5 Next: decays have a least value unless its key is null") {
  CHECK(glm5_with("linear_lower_bound", "-2.5").recurrence->least_log_decay == -2.5);
  CHECK(glm5_with("linear_lower_bound", "null").recurrence->least_log_decay == 0.0);
  const std::string linear =
      R"({"head_dim": 6, "num_heads": 4, "short_conv_kernel_size": 4, "gate_lower_bound": )";
  CHECK(glm5_with("linear_attn_config", linear + "-1.5}").recurrence->least_log_decay == -1.5);
  CHECK(glm5_names(glm5_refusal("linear_attn_config", linear + "-2.0}"), "gate_lower_bound"));
  CHECK(glm5_names(glm5_refusal("linear_attn_config", linear + "null}"), "gate_lower_bound"));
}

}  // namespace fp8kv
