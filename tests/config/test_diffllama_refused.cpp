// Values of config.json that DiffLlama does not compute, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/models/family_model.h"

namespace fp8kv {

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
