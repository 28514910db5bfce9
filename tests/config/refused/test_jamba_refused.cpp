// Values of config.json that Jamba does not compute, refused by key, and what others make of it.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

std::string jamba_refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("jamba", key, value);
}

ModelConfig jamba_with(const std::string& key, const std::string& value) {
  return parse_model_config(Json::parse(test::family_with("jamba", key, value), "config.json"));
}

}  // namespace

TEST_CASE("Jamba: keys of its layers must be there") {
  for (const char* key : {"attn_layer_period", "attn_layer_offset", "expert_layer_period",
                          "expert_layer_offset", "num_experts", "num_key_value_heads",
                          "mamba_d_state", "mamba_d_conv", "mamba_expand", "mamba_dt_rank"}) {
    CAPTURE(key);
    CHECK(jamba_refusal(key, "null").find(key) != std::string::npos);
  }
  CHECK(jamba_refusal("attn_layer_offset", "4").find("attn_layer_offset") != std::string::npos);
}

TEST_CASE("Jamba: sizes and norms of a state") {
  CHECK(jamba_refusal("mamba_d_state", "65") ==
        "config.json: mamba_d_state: is 65, expected 1 to 64");
  CHECK(jamba_refusal("mamba_d_conv", "9") == "config.json: mamba_d_conv: is 9, expected 1 to 8");
  CHECK(jamba_refusal("mamba_dt_rank", R"("full")").find("mamba_dt_rank") != std::string::npos);
  CHECK(jamba_refusal("mamba_inner_layernorms", "false") ==
        "config.json: mamba_inner_layernorms: is false: a state without norms of its steps, K and "
        "Q is not supported");
  CHECK(jamba_with("mamba_dt_rank", R"("auto")").recurrence->rank == 2);
  CHECK(jamba_with("mamba_dt_rank", "3").recurrence->rank == 3);
}

TEST_CASE("Jamba: one expert is a dense part in every layer") {
  CHECK_FALSE(jamba_with("num_experts", "1").experts.has_value());
  const ModelConfig config = jamba_with("num_experts", "5");
  CHECK(config.has_experts(1));
  CHECK_FALSE(config.has_experts(0));
}

TEST_CASE("Jamba: a state is a number for each channel and row, and the channels' last tokens") {
  const Json config = test::family_golden("jamba").at("config");
  const ModelDescription model = describe_model(config);
  CHECK(model.layer(0).state_bytes == 64 * (5 * 4 + 3 * 2));
  CHECK(model.layer(2).state_bytes == 0);
  CHECK(model.layer(2).n_kv_heads == 2);
}

}  // namespace fp8kv
