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

TEST_CASE("rope config: a number that is not finite is refused by name") {
  const auto error = [](const char* key, const char* value) {
    return test::error_of([&] {
      parse_model_config(Json::parse(llama_with(key, value), "config.json", JsonNumbers::python));
    });
  };
  CHECK(error("rope_theta", "Infinity") ==
        "config.json: rope_theta: is Infinity, expected a positive number");
  CHECK(error("rope_theta", "NaN") ==
        "config.json: rope_theta: is NaN, expected a positive number");
  CHECK(error("rope_scaling", R"({"type": "linear", "factor": Infinity})") ==
        "config.json: rope_scaling.factor: is Infinity, expected a positive number");
  CHECK(error("rms_norm_eps", "NaN") ==
        "config.json: rms_norm_eps: is NaN, expected a small positive number");
  CHECK(error("hidden_size", "Infinity") ==
        "config.json: hidden_size: is a number (Infinity), expected an integer");
}

TEST_CASE("rope config: rope scaling that is unknown or impossible is refused") {
  const auto refused = [](const char* value) {
    return error_of_config(llama_with("rope_scaling", value));
  };
  CHECK(refused(R"({"type": "ntk", "factor": 2.0})") ==
        "config.json: rope_scaling.type: the rope scaling 'ntk' is not supported");
  CHECK(
      test::help_of([] { parse_config(llama_with("rope_scaling", R"({"rope_type": "ntk"})")); }) ==
      "supported are 'default', 'linear', 'dynamic', 'llama3', 'proportional', 'yarn', "
      "'deepseek_yarn', 'longrope' and 'mrope'");
  CHECK(refused(R"({"type": "dynamic", "factor": 0.5})") ==
        "config.json: rope_scaling.factor: is 0.5, expected at least 1");
  CHECK(refused(R"({"type": "dynamic", "factor": 2, "alpha": 1000})") ==
        "config.json: rope_scaling.alpha: is 1000: a base that grows by alpha is not supported");
  CHECK(refused(R"({"type": "longrope", "short_factor": [1, 1, 1], "long_factor": [1, 2, 3, 4],
                    "original_max_position_embeddings": 8})") ==
        "config.json: rope_scaling.short_factor: is [1, 1, 1], expected an array of 4 numbers, one "
        "for each pair that is rotated");
  CHECK(refused(R"({"type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [1, 2, 3, 0],
                    "original_max_position_embeddings": 8})") ==
        "config.json: rope_scaling.long_factor[3]: is 0, expected a positive number");
  CHECK(refused(R"({"type": "linear"})") ==
        "config.json: rope_scaling: the key 'factor' is missing");
  CHECK(refused(R"({"type": "linear", "factor": 0.5})") ==
        "config.json: rope_scaling.factor: is 0.5, expected at least 1");
  CHECK(refused(R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
                    "high_freq_factor": 4, "original_max_position_embeddings": 8192})") ==
        "config.json: rope_scaling: high_freq_factor is 4, expected more than low_freq_factor, "
        "which is 4");
  CHECK(refused(R"("linear")") == R"(config.json: rope_scaling: is "linear", expected an object)");
  CHECK(refused(R"({"rope_type": "default", "partial_rotary_factor": 0.25})") ==
        "config.json: rope_scaling.partial_rotary_factor: is 0.25: rotating only a part of each "
        "head is not supported");
  CHECK(refused(R"({"full_attention": {"rope_type": "default"}})") ==
        "config.json: rope_scaling.full_attention: a rope of its own for some layers is not "
        "supported");
  CHECK(error_of_config(llama_with("rope_theta", "0")) ==
        "config.json: rope_theta: is 0, expected a positive number");
}

TEST_CASE("rope config: yarn is read with its defaults, and reaches beyond what was trained") {
  const auto with_yarn = [](const char* more) {
    return llama_with(
        "rope_scaling",
        cat(R"({"type": "yarn", "original_max_position_embeddings": 128)", more, "}"));
  };
  const ModelConfig config = parse_config(with_yarn(R"(, "factor": 4.0)"));
  CHECK(config.ropes[0].scaling == RopeScaling::yarn);
  CHECK(config.ropes[0].factor == 4);
  CHECK(config.ropes[0].original_context == 128);
  CHECK(config.ropes[0].beta_fast == 32);
  CHECK(config.ropes[0].beta_slow == 1);
  CHECK(config.ropes[0].truncate);
  CHECK(config.ropes[0].attention_factor == doctest::Approx(1.138629436111989).epsilon(1e-15));
  CHECK(config.max_seq_len == 512);  // max_position_embeddings is 128
  CHECK(parse_config(with_yarn(R"(, "factor": 4.0, "attention_factor": 1.5)"))
            .ropes[0]
            .attention_factor == 1.5);

  CHECK(error_of_config(llama_with("rope_scaling", R"({"type": "yarn", "factor": 2})")) ==
        "config.json: rope_scaling: the key 'original_max_position_embeddings' is missing");
  CHECK(error_of_config(with_yarn(R"(, "factor": 4.0, "mscale": 0.7)")) ==
        "config.json: rope_scaling.mscale: is 0.7: this part of yarn is not supported");
  CHECK(error_of_config(with_yarn(R"(, "factor": 4.0, "beta_slow": 32)")) ==
        "config.json: rope_scaling: beta_fast is 32, expected more than beta_slow, which is 32");
  CHECK(error_of_config(with_yarn(R"(, "factor": 4.0, "rope_theta": 1)")) ==
        "config.json: rope_scaling: rope_theta is 1, expected more than 1");
  CHECK(error_of_config(with_yarn(R"(, "factor": 1e9)")) ==
        "config.json: its rope reaches to position 1.28e+11");
}

TEST_CASE("rope config: a part of a head that cannot be rotated is refused") {
  const auto refused = [](const char* part) {
    JsonWriter text;
    text.value(test::family_golden("phi").at("config"));
    return error_of_config(json_with_member(text.text(), "partial_rotary_factor", part));
  };
  CHECK(refused("0.4") ==
        "config.json: partial_rotary_factor: is 0.4, which is 3 of the 8 elements of a head, "
        "expected an even number of them");
  CHECK(refused("1.5") ==
        "config.json: partial_rotary_factor: is 1.5, which is 12 of the 8 elements of a head, "
        "expected an even number of them");
  CHECK(refused("0.1") ==
        "config.json: partial_rotary_factor: is 0.1, which is 0 of the 8 elements of a head, "
        "expected an even number of them");
  CHECK(refused("-1") == "config.json: partial_rotary_factor: is -1, expected a positive number");
}

TEST_CASE("rope config: a proportional rope is refused where a part of each head is rotated") {
  const char* rope = R"({"rope_type": "proportional", "partial_rotary_factor": 0.5})";
  for (const char* golden : {"glm", "phi3", "bamba", "minimax-m2", "deepseek-v3"}) {
    CAPTURE(golden);
    CHECK(error_of_config(json_with_member(without_rope(golden), "rope_parameters", rope)) ==
          "config.json: rope_parameters: is proportional, expected another type of rope");
  }
}

// transformers norms Q and K after the rotation, which cancels any factor.
TEST_CASE("rope config: a rope of Llama 4 may not multiply Q and K before their norm") {
  const auto with = [](const char* factor, const char* norm) {
    const std::string yarn =
        cat(R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
                "attention_factor": )",
            factor, "}");
    const std::string config = json_with_member(without_rope("llama4"), "rope_scaling", yarn);
    return json_with_member(config, "use_qk_norm", norm);
  };
  CHECK(error_of_config(with("1.5", "true")) ==
        "config.json: rope_scaling: multiplies Q and K by 1.5 as they are rotated, expected 1: "
        "their norms come after that in this architecture");
  CHECK(parse_config(with("1.0", "true")).ropes[0].scaling == RopeScaling::yarn);
  CHECK(parse_config(with("1.5", "false")).ropes[0].attention_factor == 1.5);
}

TEST_CASE("rope config: rotations by type of layer have an object each") {
  const auto refused = [](const char* parameters) {
    JsonWriter text;
    text.value(test::family_golden("gemma3-new-keys").at("config"));
    return error_of_config(json_with_member(text.text(), "rope_parameters", parameters));
  };
  CHECK(refused(R"({"rope_type": "default", "rope_theta": 5.0})") ==
        "config.json: rope_parameters: is {\"rope_type\": \"default\", \"rope_theta\": "
        "5.0}, expected an object for 'full_attention' and one for 'sliding_attention'");
}

}  // namespace fp8kv
