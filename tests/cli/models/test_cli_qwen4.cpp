// Commands on Qwen 4 Exp, whose scales vLLM loads and does not use.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/workplaces/random_place.h"

namespace fp8kv {
namespace {

constexpr const char* kUnread =
    "loads the scales where its sparse attention does not look: an FP8 cache runs with 1";

}  // namespace

TEST_CASE("cli Qwen 4: scales are measured, and no command gives them to vLLM") {
  const test::RandomPlace place("qwen4-exp");
  CHECK(place.run({"calibrate", "m", "--data", "d.jsonl", "-o", "m.json"}).exit_code == 0);
  const test::CliResult eval =
      place.run({"eval", "m", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"});
  CHECK(eval.exit_code == 0);
  CHECK(eval.out.find(cat(kUnread, ".\n  vllm serve m --kv-cache-dtype fp8\n")) !=
        std::string::npos);
  const test::CliResult fit = place.run({"fit", "m", "--data", "d.jsonl", "-q", "--max-kld", "10"});
  CHECK(fit.exit_code == 0);
  CHECK(fit.out.find(cat("Measured with scales of 1. vLLM 0.32 and newer: ", kUnread, ".\n")) !=
        std::string::npos);
  CHECK(fit.out.find("fp8kv inject") == std::string::npos);
  CHECK(place.run({"inject", "m", "--scales", "m.json", "-o", "m-fp8"}).exit_code == 0);
  const test::CliResult verified = place.run({"verify", "m-fp8", "--runtime", "vllm"});
  CHECK(verified.exit_code == 1);
  CHECK(verified.out.find(kUnread) != std::string::npos);
}

TEST_CASE("cli Qwen 4: plan counts one key for each block, and the states of n-grams") {
  const test::RandomPlace place("qwen4-exp");
  const Json plan =
      Json::parse(place.run({"plan", "m", "--kv-cache-dtype", "fp8", "--json"}).out, "stdout");
  // Two layers of 2 KV heads of 16 elements; a key of 10 elements in 16 bits for 4 tokens.
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 2 * (2 * 2 * 16 + 10 * 2 / 4));
  CHECK(
      place.run({"plan", "m"})
          .out.find("indexers    2 layers; 5 bytes a token and layer, whatever the cache holds") !=
      std::string::npos);
}

TEST_CASE("cli Qwen 4: the same text alone, beside others, and with any number of threads") {
  test::RandomPlace("qwen4-exp").check_same_everywhere();
}

}  // namespace fp8kv
