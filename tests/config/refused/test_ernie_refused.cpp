// Values of config.json that ERNIE 4.5 VL does not compute, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::refusal_of_family;

// The refusal of a published config with another value of a key.
std::string refused(const std::string& key, const std::string& value) {
  return refusal_of_family("ernie4_5-vl-published", key, value);
}

}  // namespace

TEST_CASE("ERNIE 4.5 VL: numbers of text and images that have to be alike are") {
  const std::string same =
      ", expected the same number for text and for images: models that differ in it are not "
      "supported";
  CHECK(refused("moe_num_experts", "[6, 4]") == "config.json: moe_num_experts: is [6, 4]" + same);
  CHECK(refused("moe_layer_start_index", "[1, 2]") ==
        "config.json: moe_layer_start_index: is [1, 2]" + same);
  CHECK(refused("moe_layer_end_index", "[3, 2]") ==
        "config.json: moe_layer_end_index: is [3, 2]" + same);
  CHECK(refused("moe_num_experts", "[6]") ==
        "config.json: moe_num_experts: is [6], expected two numbers, for text and for images");
}

TEST_CASE("ERNIE 4.5: experts per token have one number in both spellings") {
  for (const char* golden : {"ernie4_5-moe", "ernie4_5-vl-published"}) {
    CHECK(refusal_of_family(golden, "num_experts_per_tok", "1") ==
          "config.json: moe_k: is 2, but config.json: num_experts_per_tok is 1");
  }
}

TEST_CASE("ERNIE 4.5 VL: keys for which runtimes have other defaults are there") {
  for (const std::string key : {"moe_num_experts", "moe_num_shared_experts", "num_key_value_heads",
                                "moe_intermediate_size", "moe_k", "tie_word_embeddings"}) {
    CAPTURE(key);
    CHECK(refused(key, "null") == "config.json: the key '" + key + "' is null");
  }
}

TEST_CASE("ERNIE 4.5 VL: published keys have the published model_type") {
  CHECK(refused("model_type", R"("ernie4_5_vl_moe")") ==
        "config.json: the key 'text_config' is missing");
}

TEST_CASE("ERNIE 4.5 VL: a rope that is scaled, or does not cover a head, is refused") {
  CHECK(
      refused("rope_scaling", R"({"type": "linear", "factor": 2.0})") ==
      "config.json: rope_scaling.type: is \"linear\", expected \"default\": no other rope of this "
      "architecture is supported");
  const std::string sections = "config.json: rope_scaling.mrope_section: is ";
  const std::string expected =
      ", expected three numbers whose sum is 4, half of a head, and the first two alike";
  for (const std::string list : {"[1, 1, 1]", "[2, 1, 1]", "[2, 2]", "4"}) {
    CAPTURE(list);
    CHECK(refused("rope_scaling", R"({"type": "default", "mrope_section": )" + list + "}") ==
          sections + list + expected);
  }
}

TEST_CASE("ERNIE 4.5 VL: the angles of time are a number that runtimes agree on") {
  const std::string rest =
      " of the 4 angles of a head, expected a number that leaves an even rest, or an mrope_section";
  CHECK(refused("freq_allocation", "4") == "config.json: freq_allocation: gives time 4" + rest);
  CHECK(refused("freq_allocation", "1") == "config.json: freq_allocation: gives time 1" + rest);
  CHECK(refused("freq_allocation", "null") == "config.json: gives time 20" + rest);
  const std::string both = json_with_member(
      test::family_with("ernie4_5-vl-published", "rope_scaling", R"({"mrope_section": [1, 1, 2]})"),
      "freq_allocation", "3");
  CHECK(test::error_of_config(both) ==
        "config.json: freq_allocation: is 3, but the last number of mrope_section is 2: vLLM reads "
        "the one, and transformers the other");
}

TEST_CASE("ERNIE 4.5 VL: models without a choice bias, and other lists of layers, are refused") {
  CHECK(refused("moe_use_aux_free", "false") ==
        "config.json: moe_use_aux_free: is false, expected true: models without a choice bias are "
        "not supported");
  CHECK(refused("mlp_layer_types", R"(["dense", "sparse", "sparse", "sparse"])") ==
        "config.json: moe_layer_start_index: makes layer 2 one without experts, and "
        "mlp_layer_types does not: runtimes differ in which they go by");
  CHECK(refused("mlp_layer_types", R"(["dense", "sparse", "dense", "dense"])") ==
        "config.json: moe_layer_start_index: makes layer 3 one with experts, and mlp_layer_types "
        "does not: runtimes differ in which they go by");
}

}  // namespace fp8kv
