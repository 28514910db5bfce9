#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/quant_methods.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

Json json(const std::string& text, const char* source = "'config.json'") {
  return Json::parse(text, source);
}

KvConfig of(const std::string& config, const std::string& hf_quant = "") {
  std::optional<Json> file;
  if (!hf_quant.empty()) file = json(hf_quant, "'hf_quant_config.json'");
  return read_kv_config(json(config), file);
}

KvConfig of_block(const std::string& block) {
  return of(R"({"quantization_config": )" + block + "}");
}

constexpr const char* kScheme = R"("kv_cache_scheme": {"num_bits": 8, "type": "float"})";

TEST_CASE("quant_config: a config without a word of the cache says nothing of it") {
  for (const char* config :
       {"{}", R"({"quantization_config": {"quant_method": "gptq"}})",
        R"({"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}})",
        R"({"quantization_config": {"quant_method": "quark", "export": {"kv_cache_group": []}}})",
        R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
            "a": {"targets": ["Linear"], "input_activations": {"num_bits": 4, "type": "int"}}}}})",
        R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}})"}) {
    CAPTURE(config);
    const KvConfig found = of(config);
    CHECK(found.method == QuantMethod::none);
    CHECK(found.statement == "");
    CHECK(found.format == KvFormat::e4m3fn);
  }
  CHECK(of_block(R"({"quant_method": "gptq"})").quant_method == "gptq");
}

TEST_CASE("quant_config: compressed-tensors' era is told by the key, the version, or both") {
  const std::string block = cat(R"({"quant_method": "compressed-tensors", )", kScheme);
  CHECK_FALSE(of_block(block + "}").before_0_7);
  CHECK_FALSE(of_block(block + R"(, "version": "0.7.0"})").before_0_7);
  CHECK(of_block(block + R"(, "version": "0.6.0"})").before_0_7);
  CHECK(of(R"({"compression_config": )" + block + "}}").before_0_7);
  CHECK(of_block(block + "}").method == QuantMethod::compressed_tensors);
}

TEST_CASE("quant_config: the observer is the one named, else the default of the version") {
  const auto observer = [](const std::string& version, const std::string& named) {
    return of_block(cat(R"({"quant_method": "compressed-tensors", )",
                        version.empty() ? "" : cat(R"("version": ")", version, R"(", )"),
                        R"("kv_cache_scheme": {"num_bits": 8, "type": "float")",
                        named.empty() ? "" : cat(R"(, "observer": ")", named, "\""), "}}"))
        .observer;
  };
  CHECK(observer("", "") == "");
  CHECK(observer("0.13.9", "") == "minmax");
  CHECK(observer("0.14.0", "") == "memoryless_minmax");
  CHECK(observer("0.14.0", "mse") == "mse");
  CHECK(observer("", "minmax") == "minmax");
}

TEST_CASE("quant_config: what the cache is said to be, and where") {
  const KvConfig eight = of_block(cat(R"({"quant_method": "compressed-tensors", )", kScheme, "}"));
  CHECK(eight.statement ==
        "'config.json': quantization_config.kv_cache_scheme: is for 8-bit floats");
  CHECK(eight.stated_in == "'config.json'");
  CHECK(eight.stated == KvFormat::e4m3fn);
  CHECK(eight.is_static);
  const KvConfig dynamic = of_block(
      R"({"quant_method": "compressed-tensors",
          "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": true}})");
  CHECK_FALSE(dynamic.is_static);
  const KvConfig text = of_block(
      R"({"producer": {"name": "modelopt", "version": "0.31.0"}, "kv_cache_scheme": "NVFP4"})");
  CHECK(text.method == QuantMethod::modelopt);
  CHECK(text.statement == "'config.json': quantization_config.kv_cache_scheme: is 'NVFP4'");
  CHECK(text.stated == KvFormat::nvfp4);
  CHECK(text.format == KvFormat::nvfp4);
}

TEST_CASE("quant_config: the file is named whole, whatever is in its name") {
  const char* const name = "'a': b/config.json'";
  const KvConfig found = read_kv_config(
      json(cat(R"({"quantization_config": {"quant_method": "compressed-tensors", )", kScheme, "}}"),
           name),
      std::nullopt);
  CHECK(found.stated_in == name);
}

TEST_CASE("quant_config: ModelOpt's own file tells alone, or agrees with config.json") {
  const std::string file =
      R"({"producer": {"name": "modelopt", "version": "0.25.0"},
          "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})";
  const KvConfig alone = of("{}", file);
  CHECK(alone.method == QuantMethod::modelopt);
  CHECK(alone.producer == "modelopt");
  CHECK(alone.version == "0.25.0");
  CHECK(alone.stated_in == "'hf_quant_config.json'");
  CHECK(
      test::error_of([&] {
        of(cat(R"({"quantization_config": {"quant_method": "compressed-tensors", )", kScheme, "}}"),
           file);
      }) ==
      "'hf_quant_config.json': is ModelOpt's, but 'config.json': quantization_config: has scales "
      "for the KV cache by quant_method 'compressed-tensors'");
}

TEST_CASE("quant_config: Quark's two modes, with what they tell of the values") {
  const std::string rest =
      R"("export": {"kv_cache_group": ["*k_proj"], "min_kv_scale": 0.5}, "kv_cache_post_rope": true})";
  const KvConfig native = of_block(R"({"quant_method": "quark", )" + rest);
  CHECK(native.method == QuantMethod::quark);
  CHECK(native.producer == "Quark");
  CHECK(native.floor == 0.5);
  CHECK(native.post_rope);
  const KvConfig fp8 = of_block(R"({"quant_method": "fp8", "kv_cache_scheme": "static", )" + rest);
  CHECK(fp8.method == QuantMethod::fp8);
  CHECK(fp8.by_quark);
  CHECK(fp8.statement == "");
}

TEST_CASE("quant_config: AutoRound is told by its own word in every form it writes") {
  const std::string cache = R"("static_kv_dtype": "fp8", "autoround_version": "0.16.1")";
  const struct {
    std::string block;
    QuantMethod method;
    const char* version;
  } cases[] = {
      {R"({"quant_method": "auto-round", )" + cache + "}", QuantMethod::other, "0.16.1"},
      {R"({"quant_method": "gptq", "provider": "auto-round", "static_kv_dtype": "fp8"})",
       QuantMethod::other, ""},
      {R"({"quant_method": "fp8", )" + cache + "}", QuantMethod::fp8, "0.16.1"},
      {cat(R"({"quant_method": "compressed-tensors", "provider": "auto-round", )", kScheme, "}"),
       QuantMethod::compressed_tensors, ""},
      {R"({"quant_method": "auto-round", "static_attention_dtype": "fp8"})", QuantMethod::other,
       ""}};
  for (const auto& row : cases) {
    CAPTURE(row.block);
    const KvConfig found = of_block(row.block);
    CHECK(found.method == row.method);
    CHECK(found.by_autoround);
    CHECK(found.producer == "AutoRound");
    CHECK(found.version == row.version);
    CHECK(found.observer == "memoryless_minmax");
    CHECK(found.stated == KvFormat::e4m3fn);
    CHECK(found.stated_in == "'config.json'");
  }
}

TEST_CASE("quant_config: AutoRound with a 16-bit cache says nothing of it, with NVFP4 that") {
  for (const char* block : {R"({"quant_method": "auto-round", "autoround_version": "0.16.1"})",
                            R"({"quant_method": "gptq", "static_kv_dtype": "fp8"})",
                            R"({"quant_method": "gptq", "provider": "another"})"}) {
    CAPTURE(block);
    CHECK(of_block(block).method == QuantMethod::none);
    CHECK_FALSE(of_block(block).by_autoround);
  }
  const KvConfig four = of_block(R"({"quant_method": "auto-round", "static_kv_dtype": "nvfp4"})");
  CHECK(four.statement == "'config.json': quantization_config.static_kv_dtype: is 'nvfp4'");
  CHECK(four.stated == KvFormat::nvfp4);
  CHECK(four.by_autoround);
}

TEST_CASE("quant_config: 4-bit floats are NVFP4 by ModelOpt and AutoRound alone") {
  const std::string scheme = R"("kv_cache_scheme": {"num_bits": 4, "type": "float"})";
  CHECK(of_block(R"({"quant_method": "modelopt", )" + scheme + "}").stated == KvFormat::nvfp4);
  CHECK(of_block(R"({"quant_method": "compressed-tensors", )" + scheme + "}").stated ==
        std::nullopt);
  CHECK(of_block(R"({"quant_method": "compressed-tensors", "provider": "auto-round", )" + scheme +
                 "}")
            .stated == KvFormat::nvfp4);
  const KvConfig rank = read_trtllm_config(json(
      R"({"producer": {"name": "modelopt"}, "quantization": {"kv_cache_quant_algo": "NVFP4"}})"));
  CHECK_FALSE(rank.statement.empty());
  CHECK(rank.stated == std::nullopt);
}

TEST_CASE("quant_config: what is of another type is named") {
  CHECK(test::error_of([] { of_block("[]"); }) ==
        "'config.json': quantization_config: is [], expected an object");
  CHECK(test::error_of([] {
          of_block(R"({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8}})");
        }) == "'config.json': quantization_config.kv_cache_scheme: the key 'type' is missing");
}

QuantConfig quant_of(const std::string& config, const std::string& hf_quant = "") {
  std::optional<Json> file;
  if (!hf_quant.empty()) file = json(hf_quant, "'hf_quant_config.json'");
  return read_quant_config(json(config), file);
}

TEST_CASE("quant_config: each tool's form is told by quant_method, producer, key or file") {
  const struct {
    const char* config;
    QuantMethod method;
  } cases[] = {
      {"{}", QuantMethod::none},
      {R"({"quantization_config": {"quant_method": "compressed-tensors"}})",
       QuantMethod::compressed_tensors},
      {R"({"compression_config": {"config_groups": {}}})", QuantMethod::compressed_tensors},
      {R"({"quantization_config": {"quant_method": "fp8"}})", QuantMethod::fp8},
      {R"({"quantization_config": {"quant_method": "quark"}})", QuantMethod::quark},
      {R"({"quantization_config": {"quant_method": "modelopt"}})", QuantMethod::modelopt},
      {R"({"quantization_config": {"quant_method": "modelopt_mxfp8"}})", QuantMethod::modelopt},
      {R"({"quantization_config": {"producer": {"name": "modelopt"}}})", QuantMethod::modelopt},
      {R"({"quantization_config": {"producer": "modelopt"}})", QuantMethod::other},
      {R"({"quantization_config": {}})", QuantMethod::other},
      {R"({"quantization_config": {"quant_method": "awq"}})", QuantMethod::other},
      {R"({"text_config": {"quantization_config": {"quant_method": "fp8"}}})", QuantMethod::other},
      {R"({"num_hidden_layers": 2, "text_config": {"quantization_config": {"quant_method": "fp8"}}})",
       QuantMethod::other},
      {R"({"thinker_config": {"text_config": {"quantization_config": {}}}})", QuantMethod::other},
  };
  for (const auto& row : cases) {
    CAPTURE(row.config);
    CHECK(quant_of(row.config).method == row.method);
  }
  const std::string file = R"({"quantization": {"quant_algo": "FP8"}})";
  CHECK(quant_of("{}", file).method == QuantMethod::modelopt);
  CHECK(quant_of("{}", file).name() == "modelopt");
  CHECK(quant_of(R"({"quantization_config": {"quant_method": "fp8"}})", file).method ==
        QuantMethod::fp8);
}

TEST_CASE("quant_config: weights are quantised unless every linear layer is left out") {
  const std::vector<std::string> modules = {"lm_head", "model.layers.0.mlp.up_proj"};
  const auto weights = [&](const std::string& block, const std::string& file = "") {
    const std::string config =
        block.empty() ? "{}" : cat(R"({"quantization_config": )", block, "}");
    return quantised_weights(quant_of(config, file), modules);
  };
  const std::string group = R"("config_groups": {"a": {"weights": {"num_bits": 8}}})";
  const std::string tensors = R"({"quant_method": "compressed-tensors", )" + group;
  CHECK(weights("") == "");
  CHECK(weights(tensors + "}") ==
        "'config.json': quantization_config.config_groups.a: quantises weights");
  CHECK(test::error_of([&] {
          weights(R"({"quant_method": "compressed-tensors", "config_groups": ["x"]})");
        }) ==
        "'config.json': quantization_config.config_groups: is an array ([\"x\"]), expected "
        "an object");
  CHECK(weights(tensors + R"(, "ignore": ["lm_head"]})") != "");
  CHECK(weights(tensors + R"(, "ignore": ["lm_head", "re:.*_proj$"]})") == "");
  CHECK(weights(tensors + R"(, "ignore": ["Linear"]})") == "");
  // An expression that the reader does not understand may match anything, so the weights may be
  // quantised.
  CHECK(weights(tensors + R"(, "ignore": ["re:.*(head|proj)$"]})") != "");
  CHECK(weights(R"({"quant_method": "fp8"})") ==
        "'config.json': quantization_config: the weights are quantised (quant_method 'fp8')");
  CHECK(weights(R"({"quant_method": "fp8", "ignored_layers": ["lm_head"]})") != "");
  CHECK(weights(R"({"quant_method": "fp8",
                    "ignored_layers": ["lm_head", "model.layers.0.mlp.up_proj"]})") == "");
  CHECK(weights(R"({"quant_method": "modelopt_fp4", "quant_algo": null})") == "");
  CHECK(weights("", R"({"quantization": {"kv_cache_quant_algo": "FP8"}})") == "");
  CHECK(weights("", R"({"quantization": {"quant_algo": "FP8"}})") ==
        "'hf_quant_config.json': quantises the weights with modelopt");
}

TEST_CASE("quant_config: versions are compared as numbers") {
  CHECK(version_before("0.9.4", "0.14"));
  CHECK(version_before("0.13.9", "0.14"));
  CHECK(version_before("0.42.0rc1", "0.43"));
  CHECK_FALSE(version_before("0.43.0", "0.43"));
  CHECK_FALSE(version_before("0.43.0.dev5+g1", "0.43"));
  CHECK_FALSE(version_before("1.0", "0.43"));
  CHECK_FALSE(version_before("", "0.43"));
  CHECK_FALSE(version_before("main", "0.43"));
}

}  // namespace
}  // namespace fp8kv
