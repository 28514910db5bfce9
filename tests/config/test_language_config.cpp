#include <doctest/doctest.h>

#include "config/values/language_config.h"

namespace fp8kv {
namespace {

Json parsed(const char* text) {
  return Json::parse(text, "config.json");
}

}  // namespace

TEST_CASE("language_config: a config with layers of its own wraps none") {
  const Json config = parsed(R"({"num_hidden_layers": 2, "text_config": {"n_layer": 5}})");
  CHECK(language_config(config).has("text_config"));
  CHECK(language_config(parsed("{}")).size() == 0);
}

TEST_CASE("language_config: a dtype counts wherever it is") {
  const auto dtype = [](const char* text) { return find_dtype(parsed(text))->as_string(); };
  CHECK(dtype(R"({"torch_dtype": "float16", "text_config": {"dtype": "bfloat16"}})") == "float16");
  CHECK(dtype(R"({"text_config": {"torch_dtype": "bfloat16"}})") == "bfloat16");
  CHECK_FALSE(find_dtype(parsed("{}")).has_value());
}

}  // namespace fp8kv
