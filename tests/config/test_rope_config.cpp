#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::error_of_config;
using test::llama_with;
using test::parse_config;
using test::without_rope;

}  // namespace

TEST_CASE("rope config: rope scaling is read in every spelling") {
  const auto rope = [](const char* key, const char* value) {
    return parse_config(llama_with(key, value)).ropes[0];
  };
  CHECK(rope("rope_scaling", R"({"type": "linear", "factor": 2})").scaling == RopeScaling::linear);
  CHECK(rope("rope_scaling", R"({"type": "linear", "factor": 2})").factor == 2.0);
  CHECK(rope("rope_scaling", R"({"rope_type": "default"})").scaling == RopeScaling::none);
  CHECK(parse_config(json_with_member(llama_with("rope_theta", "null"), "rope_parameters",
                                      R"({"rope_theta": 5.0})"))
            .ropes[0]
            .theta == 5.0);
  CHECK(rope("rope_parameters", R"({"rope_type": "linear", "factor": 3.0})").factor == 3.0);
  CHECK(rope("rope_parameters", R"({"rope_type": "linear", "factor": 3.0})").theta == 10000.0);
  CHECK(rope("rope_theta", "12345.5").theta == 12345.5);
}

// Source: the config classes of transformers 5.24 and 4.57, which scripts/check_defaults reads.
TEST_CASE("rope config: without a base in the config it is that of the family in transformers") {
  CHECK(
      parse_config(test::config_with("MixtralForCausalLM", "rope_theta", "null")).ropes[0].theta ==
      1e6);
  CHECK(parse_config(without_rope("smollm3")).ropes[0].theta == 2e6);
  CHECK(parse_config(without_rope("minimax-m2")).ropes[0].theta == 5e6);
  CHECK(parse_config(without_rope("cohere2")).ropes[0].theta == 10000);
  CHECK(parse_config(without_rope("qwen2-vl-flat")).ropes[0].theta == 1e6);
  const char* linear = R"({"rope_type": "linear", "factor": 2.0})";
  CHECK(parse_config(json_with_member(without_rope("smollm3"), "rope_parameters", linear))
            .ropes[0]
            .theta == 2e6);
}

TEST_CASE("rope config: a base that versions of transformers differ in has to be said") {
  const auto help = [](const std::string& config) {
    try {
      parse_config(config);
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "config.json: the key 'rope_theta' is missing");
      return error.help();
    }
    return std::string();
  };
  const auto takes = [](const char* now, const char* before) {
    return cat("write the one that the model was trained with: transformers 5.24 takes ", now,
               ", and 4.57 takes ", before);
  };
  CHECK(help(without_rope("cohere")) == takes("500000", "10000"));
  CHECK(help(without_rope("falcon-h1")) == takes("10000", "100000"));
  CHECK(help(without_rope("olmo3")) == takes("500000", "10000"));
}

namespace {

// A golden whose ropes are given per type of layer, with this rope_scaling beside them.
std::string with_scaling(const std::string& golden, const std::string& full,
                         const std::string& scaling) {
  const std::string nested = R"({"full_attention": )" + full + R"(,
      "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}})";
  const std::string config = json_with_member(without_rope(golden), "rope_parameters", nested);
  return json_with_member(config, "rope_scaling", scaling);
}

constexpr const char* kPlain = R"({"rope_type": "default", "rope_theta": 1000.0})";
constexpr const char* kLinear = R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 1000.0})";

}  // namespace

// Source: Gemma3TextConfig and Olmo3Config of transformers 5.24.
TEST_CASE("rope config: rope_scaling adds to the rope of layers without a window") {
  for (const char* golden : {"gemma3-new-keys", "olmo3"}) {
    CAPTURE(golden);
    const auto rope = [&](const char* full, const char* scaling) {
      return parse_config(with_scaling(golden, full, scaling)).ropes[0];
    };
    CHECK(rope(kPlain, R"({"rope_type": "linear", "factor": 4.0})").factor == 4);
    CHECK(rope(kPlain, R"({"rope_type": "linear", "factor": 4.0})").theta == 1000);
    CHECK(rope(R"({"rope_theta": 9.0})", R"({"type": "linear", "factor": 4.0})").factor == 4);
    CHECK(rope(R"({"rope_type": "linear"})", R"({"factor": 4.0, "rope_theta": 7.0})").theta == 7);
    CHECK(rope(kLinear, R"({"type": "linear", "factor": 4})").factor == 4);
    CHECK(rope(kLinear, "{}").factor == 4);
    const std::string plain = with_scaling(golden, kPlain, R"({"rope_type": "default"})");
    CHECK(parse_config(plain).ropes[1].factor == 1);
  }
}

TEST_CASE("rope config: a member of rope_scaling that nobody reads is named") {
  const auto unknown = [](const char* scaling) {
    return parse_config(with_scaling("olmo3", kLinear, scaling)).unknown_keys;
  };
  CHECK(unknown(R"({"type": "linear", "factor": 4})") == std::vector<std::string>{});
  CHECK(unknown(R"({"factor": 4, "beta_fast": 2})") ==
        std::vector<std::string>{"rope_scaling.beta_fast"});
}

TEST_CASE("rope config: rope_scaling may not contradict the rope of layers without a window") {
  for (const char* golden : {"gemma3-new-keys", "olmo3"}) {
    CAPTURE(golden);
    const auto refused = [&](const char* full, const char* scaling) {
      return error_of_config(with_scaling(golden, full, scaling));
    };
    CHECK(refused(kLinear, R"({"type": "linear", "factor": 8.0})") ==
          "config.json: rope_scaling.factor: is 8.0, but config.json: "
          "rope_parameters.full_attention.factor is 4.0");
    CHECK(refused(kLinear, R"({"rope_type": "yarn", "factor": 4.0})") ==
          "config.json: rope_scaling.rope_type: is \"yarn\", but config.json: "
          "rope_parameters.full_attention.rope_type is \"linear\"");
    // transformers 4.57 reads the type from 'type' here, 5.24 does not.
    CHECK(refused(kPlain, R"({"type": "linear", "factor": 8.0})") ==
          "config.json: rope_scaling.type: is \"linear\", but config.json: "
          "rope_parameters.full_attention.rope_type is \"default\"");
    CHECK(refused("null", R"({"type": "linear", "factor": 8.0})") ==
          "config.json: rope_parameters: the key 'full_attention' is null");
  }
}

// Source: convert_rope_params_to_dict of transformers 5.24, and the rotary embeddings of 4.57.
TEST_CASE("rope config: a type that versions of transformers differ in reading has to be said") {
  for (const char* golden : {"gemma3", "gemma3n", "olmo3"}) {
    CAPTURE(golden);
    const auto with = [&](const char* scaling) {
      return json_with_member(without_rope(golden), "rope_scaling", scaling);
    };
    const std::string config =
        json_with_member(with(R"({"type": "linear", "factor": 4.0})"), "rope_theta", "5000.0");
    CHECK(error_of_config(config) ==
          "config.json: rope_scaling.type: is \"linear\", which versions of transformers differ in "
          "reading for this architecture");
    const char* both = R"({"type": "linear", "rope_type": "linear", "factor": 4.0})";
    CHECK(parse_config(json_with_member(with(both), "rope_theta", "5e5")).ropes[0].factor == 4);
    const std::string plain = json_with_member(with(R"({"type": "default"})"), "rope_theta", "5e5");
    CHECK(parse_config(plain).ropes[0].theta == 5e5);
  }
}

TEST_CASE("rope config: one base for all layers of an OLMo 3 is that of the family") {
  const auto with = [](const char* theta) {
    return json_with_member(without_rope("olmo3"), "rope_theta", theta);
  };
  CHECK(parse_config(with("500000")).ropes[0].theta == 500000);
  CHECK(error_of_config(with("50.0")) ==
        "config.json: rope_theta: is 50.0, which transformers 4.57 has in all layers, and 5.24 not "
        "in those with a window");
  const char* full = R"(["full_attention", "full_attention", "full_attention", "full_attention"])";
  CHECK(parse_config(json_with_member(with("50.0"), "layer_types", full)).ropes[0].theta == 50);
}

// Source: Gemma3TextConfig and Olmo3Config of transformers 5.24.
TEST_CASE("rope config: a base outside of ropes by type of layer counts where they have none") {
  const char* nested = R"({"full_attention": {"rope_type": "default"},
      "sliding_attention": {"rope_type": "default"}})";
  const auto ropes = [&](const char* golden, const char* local) {
    std::string config = json_with_member(without_rope(golden), "rope_parameters", nested);
    config = json_with_member(config, "rope_local_base_freq", local);
    return parse_config(json_with_member(config, "rope_theta", "777.0")).ropes;
  };
  CHECK(ropes("gemma3-new-keys", "33.0")[0].theta == 777);
  CHECK(ropes("gemma3-new-keys", "33.0")[1].theta == 33);
  CHECK(ropes("gemma3-new-keys", "null")[1].theta == 10000);
  CHECK(ropes("olmo3", "null")[0].theta == 777);
  CHECK(ropes("olmo3", "null")[1].theta == 500000);
}

// transformers 4.57 saves both names.
TEST_CASE("rope config: GPT-NeoX may give its rotated part under the newer name as well") {
  const auto with = [](const char* old_name, const char* new_name) {
    const std::string config = json_with_member(without_rope("gpt-neox"), "rotary_pct", old_name);
    return json_with_member(config, "partial_rotary_factor", new_name);
  };
  CHECK(parse_config(with("0.5", "0.5")).ropes[0].rotary_dim == 4);
  CHECK(parse_config(with("null", "0.25")).ropes[0].rotary_dim == 2);
  CHECK(error_of_config(with("0.5", "0.25")) ==
        "config.json: partial_rotary_factor: is 0.25, but config.json: rotary_pct is 0.5");
  CHECK(error_of_config(with("null", "0.5")) == "config.json: the key 'rotary_pct' is null");
}

// transformers 5 saves this form.
TEST_CASE("rope config: a base in rope_parameters counts in a language model inside another") {
  for (const char* golden : {"qwen2-vl", "qwen2.5-vl", "qwen3-vl"}) {
    CAPTURE(golden);
    const Json config = test::family_golden(golden).at("config");
    JsonWriter text;
    text.value(config.at("text_config"));
    const auto with = [&](const char* parameters) {
      std::string inner = json_with_member(text.text(), "rope_theta", "null");
      inner = json_with_member(inner, "rope_scaling", "null");
      inner = json_with_member(inner, "rope_parameters", parameters);
      JsonWriter whole;
      whole.value(config);
      return json_with_member(whole.text(), "text_config", inner);
    };
    CHECK(parse_config(with(R"({"rope_type": "default", "rope_theta": 777.0,
        "mrope_section": [2, 3, 3]})"))
              .ropes[0]
              .theta == 777);
    if (std::string(golden) == "qwen3-vl") {
      CHECK(error_of_config(with(R"({"rope_type": "default"})")) ==
            "config.json: text_config: the key 'rope_theta' is missing");
    } else {
      CHECK(parse_config(with(R"({"rope_type": "default"})")).ropes[0].theta == 1e6);
    }
  }
}

// The angles that transformers 5.23 uses for these configs, tried with a random model.
// test_architectures_refused covers contradicting pairs, which are refused.
TEST_CASE("rope config: of two spellings of a rope, that counts which counts in transformers") {
  const auto rope = [](const char* scaling, const char* parameters) {
    const std::string config =
        json_with_member(llama_with("rope_scaling", scaling), "rope_parameters", parameters);
    return parse_config(json_with_member(config, "rope_theta", "null")).ropes[0];
  };
  const char* linear = R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 777.0})";
  const char* later = R"({"rope_type": "linear", "rope_theta": 777.0})";
  CHECK(rope("{}", linear).scaling == RopeScaling::linear);
  CHECK(rope("{}", linear).theta == 777);
  CHECK(rope("null", linear).scaling == RopeScaling::linear);
  CHECK(rope(linear, later).factor == 4);
  CHECK(rope(linear, later).theta == 777);
  CHECK(rope("{}", "{}").scaling == RopeScaling::none);
}

TEST_CASE("rope config: what a scaled rope was trained with may stand outside of it") {
  const auto with = [](const char* type, const char* inner, const char* outer) {
    return json_with_member(
        llama_with("rope_parameters",
                   cat(R"({"rope_type": ")", type, R"(", "factor": 8, "low_freq_factor": 1,
                       "high_freq_factor": 4, "original_max_position_embeddings": )",
                       inner, "}")),
        "original_max_position_embeddings", outer);
  };
  for (const char* type : {"llama3", "yarn"}) {
    CAPTURE(type);
    const auto context = [&](const char* inner, const char* outer) {
      return parse_config(with(type, inner, outer)).ropes[0].original_context;
    };
    CHECK(context("64", "null") == 64);
    CHECK(context("null", "32") == 32);
    CHECK(context("64", "64") == 64);
    CHECK(error_of_config(with(type, "64", "32")) ==
          "config.json: original_max_position_embeddings: is 32, but config.json: "
          "rope_parameters.original_max_position_embeddings is 64");
    CHECK(error_of_config(with(type, "null", "null")) ==
          "config.json: rope_parameters: the key 'original_max_position_embeddings' is null");
  }
}

}  // namespace fp8kv
