// Commands on Inkling, whose layers keep the last tokens of convolutions beside their caches.
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/family_model.h"
#include "support/models/random_model.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// A random model with the config of a golden, and four windows of tokens.
struct InklingPlace {
  explicit InklingPlace(const char* golden = "inkling-vision") {
    JsonWriter config;
    config.value(test::family_golden(golden).at("config"));
    test::write_random_model(folder / "m", config.text());
    std::string text;
    for (int line = 0; line < 4; ++line) {
      std::string ids;
      for (int i = 0; i < 60; ++i) ids += cat(i == 0 ? "" : ", ", 3 + (line + i) * 31 % 74);
      text += "{\"input_ids\": [" + ids + "]}\n";
    }
    folder.write("d.jsonl", text);
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, folder.path());
  }

  test::TempDir folder;
};

constexpr const char* kInklingUnread =
    "its attention does not read the scales: an FP8 cache runs with 1";

}  // namespace

TEST_CASE("cli Inkling: scales are measured, injected and read back, and vLLM uses none") {
  const InklingPlace place;
  CHECK(place.run({"calibrate", "m", "--data", "d.jsonl", "-o", "m.json"}).exit_code == 0);
  const test::CliResult eval =
      place.run({"eval", "m", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"});
  CHECK(eval.exit_code == 0);
  CHECK(eval.out.find(cat(kInklingUnread, ".\n  vllm serve m --kv-cache-dtype fp8\n")) !=
        std::string::npos);
  CHECK(place.run({"inject", "m", "--scales", "m.json", "-o", "m-fp8"}).exit_code == 0);
  CHECK(place.run({"extract", "m-fp8", "-o", "back.json"}).exit_code == 0);
  CHECK(place.run({"diff", "m.json", "back.json"}).exit_code == 0);
  const test::CliResult verified = place.run({"verify", "m-fp8", "--runtime", "vllm"});
  CHECK(verified.exit_code == 1);
  CHECK(verified.out.find(kInklingUnread) != std::string::npos);
}

TEST_CASE("cli Inkling: plan counts the last tokens of convolutions") {
  const InklingPlace place;
  const Json plan =
      Json::parse(place.run({"plan", "m", "--kv-cache-dtype", "fp8", "--json"}).out, "stdout");
  // Two layers of 3 KV heads of 8 elements, two of 2 KV heads of 12; 3 tokens of each in 16 bits.
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 4 * 2 * 24);
  CHECK(plan.at("plans")[0].at("state_bytes").as_int() == 4 * 3 * (2 * 24 + 2 * 32) * 2);
}

TEST_CASE("cli Inkling: the same text alone, beside others, and with any number of threads") {
  const InklingPlace place;
  const std::string prompt = R"({"input_ids": [3, 40, 9, 46, 12, 5, 70]})";
  place.folder.write("one.jsonl", prompt + "\n");
  place.folder.write("two.jsonl", R"({"input_ids": [8, 9]})"
                                  "\n" +
                                      prompt + "\n");
  const auto ids = [&](const char* prompts, const char* threads, size_t number) {
    const test::CliResult result = place.run(
        {"run", "m", "--prompts", prompts, "-n", "20", "--threads", threads, "--json", "-q"});
    CHECK(result.exit_code == 0);
    std::istringstream lines(result.out);
    std::string line;
    for (size_t i = 0; i <= number; ++i) std::getline(lines, line);
    JsonWriter found;
    found.value(Json::parse(line, "stdout").at("ids"));
    return found.text();
  };
  const std::string alone = ids("one.jsonl", "2", 0);
  CHECK(ids("one.jsonl", "1", 0) == alone);
  CHECK(ids("two.jsonl", "2", 1) == alone);
}

TEST_CASE("cli Inkling: quantize refuses experts that lie in one tensor") {
  for (const char* golden : {"inkling", "inkling-vision"}) {
    const InklingPlace place(golden);
    const test::CliResult result =
        place.run({"quantize", "m", "-o", "m-q", "--scheme", "fp8-dynamic"});
    CHECK(result.exit_code == 3);
    CHECK(result.err.find("has all experts of a layer in one tensor") != std::string::npos);
  }
}

}  // namespace fp8kv
