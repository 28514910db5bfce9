#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/generation_config.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

GenerationConfig config_of(const std::string& text) {
  const test::TempDir folder;
  folder.write("generation_config.json", text);
  return read_generation_config(folder.path());
}

// The file of Qwen2.5 7B Instruct.
TEST_CASE("generation_config: the sampling of a chat model is read, and what is missing is named") {
  const std::string text = R"({"bos_token_id": 151643, "pad_token_id": 151643, "do_sample": true,
      "eos_token_id": [151645, 151643], "repetition_penalty": 1.05, "temperature": 0.7,
      "top_p": 0.8, "top_k": 20, "transformers_version": "4.37.0"})";
  const GenerationConfig config = config_of(text);
  CHECK(config.do_sample);
  CHECK(config.temperature == std::optional(0.7f));
  CHECK(config.top_p == std::optional(0.8f));
  CHECK(config.top_k == std::optional(20));
  CHECK(config.unsupported == std::vector<std::string>{"repetition_penalty 1.05"});
  const test::TempDir folder;
  CHECK_FALSE(read_eos_ids(folder.path()));
  CHECK_FALSE(read_generation_config(folder.path()).do_sample);
  folder.write("generation_config.json", text);
  CHECK(read_eos_ids(folder.path()) == std::optional(std::vector<int32_t>{151645, 151643}));
}

TEST_CASE("generation_config: without do_sample nothing is drawn, as in transformers") {
  const GenerationConfig config = config_of(R"({"temperature": 0.6, "top_p": 0.9, "top_k": 50})");
  CHECK_FALSE(config.do_sample);
  CHECK_FALSE(config.temperature);
  CHECK_FALSE(config.top_p);
  CHECK_FALSE(config.top_k);
}

TEST_CASE("generation_config: the number of new tokens counts with do_sample and without") {
  CHECK(config_of(R"({"max_new_tokens": 9})").max_new_tokens == std::optional<int64_t>(9));
  CHECK(config_of(R"({"max_new_tokens": 9, "do_sample": true})").max_new_tokens ==
        std::optional<int64_t>(9));
  CHECK_FALSE(config_of(R"({"max_new_tokens": null, "do_sample": true})").max_new_tokens);
}

TEST_CASE("generation_config: the length of prompt and answer together is read") {
  CHECK(config_of(R"({"max_length": 4096})").max_length == std::optional<int64_t>(4096));
  CHECK_FALSE(config_of(R"({"max_length": null, "max_new_tokens": 9})").max_length);
}

TEST_CASE("generation_config: options that say nothing are not named") {
  CHECK(config_of(R"({"repetition_penalty": 1.0, "num_beams": 1, "min_p": 0, "typical_p": 1.0,
                      "no_repeat_ngram_size": 0, "suppress_tokens": [], "stop_strings": null,
                      "max_length": 4096, "length_penalty": 1.0, "top_k": -1, "do_sample": true,
                      "bad_words_ids": null})")
            .unsupported.empty());
  CHECK(config_of(R"({"min_p": 0.1, "num_beams": 4, "suppress_tokens": [3]})").unsupported ==
        std::vector<std::string>{"min_p 0.1", "num_beams 4", "suppress_tokens [3]"});
  CHECK(config_of(R"({"do_sample": true, "top_k": -1})").top_k == std::optional(0));
}

TEST_CASE("generation_config: values that cannot be are refused by key") {
  const auto error = [](const std::string& text) {
    const std::string what = test::error_of([&] { config_of(text); });
    return what.substr(what.find("': ") + 3);
  };
  CHECK(error(R"({"do_sample": true, "temperature": Infinity})") ==
        "temperature: is Infinity, expected a number from 0 to 100");
  CHECK(error(R"({"do_sample": true, "top_p": 1.5})") ==
        "top_p: is 1.5, expected a number from 1e-06 to 1");
  CHECK(error(R"({"do_sample": true, "top_k": "5"})") ==
        "top_k: is a string (\"5\"), expected an integer");
  CHECK(error(R"({"max_new_tokens": 0})").starts_with("max_new_tokens: is 0, expected "));
  CHECK(test::error_of([] { config_of("[1]"); }).ends_with("': is [1], expected an object"));
  CHECK(error(R"({"do_sample": 1})") == "do_sample: is a number (1), expected true or false");
}

}  // namespace
}  // namespace fp8kv
