#include <string>

#include <doctest/doctest.h>

#include "base/text.h"
#include "quant/quant_settings.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

QuantSettings settings_of(const std::string& block) {
  return read_quant_settings(Json::parse(block, "c.json"), std::nullopt);
}

}  // namespace

TEST_CASE("quant_settings: blocks, from whichever key") {
  CHECK(settings_of(R"({"quant_method": "fp8", "weight_block_size": [64, 128]})").block_rows == 64);
  const QuantSettings groups = settings_of(R"({"config_groups": {"g": {"targets": ["Linear"],
      "weights": {"block_structure": [32, 16]}}}})");
  CHECK(groups.block_rows == 32);
  CHECK(groups.block_columns == 16);
  CHECK(groups.all_others);
  CHECK(test::error_of([] { settings_of(R"({"weight_block_size": [128]})"); }) ==
        "c.json: weight_block_size: is [128], expected two numbers");
  CHECK(test::error_of([] { settings_of(R"({"weight_block_size": [128, 0]})"); }) ==
        "c.json: weight_block_size: is [128, 0], expected two numbers above 0");
}

TEST_CASE("quant_settings: columns of a group, where they are the same everywhere") {
  const auto of = [](const std::string& block) { return settings_of(block).group_columns; };
  CHECK(of(R"({"quant_method": "gptq", "group_size": 128})") == 128);
  CHECK(of(R"({"quant_method": "awq", "group_size": -1})") == 0);  // one group per row
  CHECK(of(R"({"quant_method": "fp8"})") == 0);
  const auto of_groups = [&](const char* first, const char* second) {
    return of(cat(R"({"config_groups": {"a": {"weights": {"group_size": )", first,
                  R"(}}, "b": {"weights": {"group_size": )", second, "}}}}"));
  };
  CHECK(of_groups("32", "32") == 32);
  CHECK(of_groups("32", "64") == 0);
  CHECK(of_groups("null", "null") == 0);
  // Rounding up to whole groups would overflow.
  CHECK(test::error_of([&] { of(R"({"group_size": 9223372036854775807})"); }) ==
        "c.json: group_size: is 9223372036854775807, expected at most 1048576");
}

TEST_CASE("quant_settings: what is left out is named by whole names, parts, parents and patterns") {
  const auto out = [](const std::string& entry, const std::string& module) {
    return left_out(
        settings_of(R"({"quant_method": "awq", "modules_to_not_convert": [")" + entry + "\"]}"),
        module);
  };
  CHECK(out("lm_head", "lm_head") == LeftOut::yes);
  CHECK(out("lm_head", "model.lm_head") == LeftOut::yes);
  CHECK(out("gate", "model.layers.0.mlp.gate") == LeftOut::yes);
  CHECK(out("gate", "model.layers.0.mlp.gate_proj") == LeftOut::no);
  CHECK(out("model.layers.1", "model.layers.1.mlp.up_proj") == LeftOut::yes);
  CHECK(out("model.layers.1", "model.layers.11.mlp.up_proj") == LeftOut::no);
  CHECK(out("*self_attn*", "model.layers.1.self_attn.q_proj") == LeftOut::yes);
  CHECK(out("model.layers.*.mlp.gate", "model.layers.1.mlp.gate") == LeftOut::yes);
  CHECK(out("model.layers.*.mlp.gate", "model.layers.1.mlp.up_proj") == LeftOut::no);
  CHECK(out("re:.*mlp.gate$", "model.layers.1.mlp.gate") == LeftOut::yes);
  CHECK(out("re:.*mlp.gate$", "model.layers.1.mlp.up_proj") == LeftOut::no);
  CHECK(out("re:.*(a|b)", "model.layers.1.mlp.up_proj") == LeftOut::unclear);
  CHECK(out("Linear", "model.layers.1.mlp.up_proj") == LeftOut::yes);
}

TEST_CASE("quant_settings: whether all others are quantised is known of some methods only") {
  CHECK(settings_of(R"({"quant_method": "fp8"})").all_others);
  CHECK(settings_of(R"({"quant_method": "gptq"})").all_others);
  CHECK_FALSE(settings_of(R"({"quant_method": "gptq", "dynamic": {}})").all_others);
  CHECK_FALSE(settings_of(R"({"quant_method": "quark"})").all_others);
  CHECK_FALSE(settings_of(R"({"quant_method": "compressed-tensors", "config_groups": {"g":
      {"targets": ["re:.*mlp.*"], "weights": {}}}})")
                  .all_others);
  CHECK(settings_of(R"({"quant_method": "gptq", "checkpoint_format": "gptq_v2"})").plain_zeros);
}

TEST_CASE("quant_settings: ModelOpt's own file lists what is left out") {
  const Json file = Json::parse(
      R"({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head", "*router*"]}})",
      "hf_quant_config.json");
  const QuantSettings settings = read_quant_settings(std::nullopt, file);
  CHECK(left_out(settings, "lm_head") == LeftOut::yes);
  CHECK(left_out(settings, "model.layers.0.router.x") == LeftOut::yes);
  CHECK(left_out(settings, "model.layers.0.mlp.up_proj") == LeftOut::no);
  CHECK(settings.left_out_at == "hf_quant_config.json: quantization.exclude_modules");
}

}  // namespace fp8kv
