// Commands on Inkling, whose layers keep the last tokens of convolutions beside their caches.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/workplaces/random_place.h"

namespace fp8kv {
namespace {

constexpr const char* kInklingUnread =
    "its attention does not read the scales: an FP8 cache runs with 1";

}  // namespace

TEST_CASE("cli Inkling: scales are measured, injected and read back, and vLLM uses none") {
  const test::RandomPlace place("inkling-vision");
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
  const test::RandomPlace place("inkling-vision");
  const Json plan =
      Json::parse(place.run({"plan", "m", "--kv-cache-dtype", "fp8", "--json"}).out, "stdout");
  // Two layers of 3 KV heads of 8 elements, two of 2 KV heads of 12; 3 tokens of each in 16 bits.
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 4 * 2 * 24);
  CHECK(plan.at("plans")[0].at("state_bytes").as_int() == 4 * 3 * (2 * 24 + 2 * 32) * 2);
}

TEST_CASE("cli Inkling: the same text alone, beside others, and with any number of threads") {
  test::RandomPlace("inkling-vision").check_same_everywhere();
}

TEST_CASE("cli Inkling: quantize refuses experts that lie in one tensor") {
  for (const char* golden : {"inkling", "inkling-vision"}) {
    const test::RandomPlace place(golden);
    const test::CliResult result =
        place.run({"quantize", "m", "-o", "m-q", "--scheme", "fp8-dynamic"});
    CHECK(result.exit_code == 3);
    CHECK(result.err.find("has all experts of a layer in one tensor") != std::string::npos);
  }
}

}  // namespace fp8kv
