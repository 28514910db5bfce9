// The cache that an evaluation advises, and the way to serve it.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "report/advice.h"
#include "report/serving.h"
#include "report/verdict.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

EvalReport plain_report() {
  return test::sample_report({.layers = 6, .name = ""});
}

// Sets the KL divergence in each of 16 parts to `mean`, alternately plus and minus `spread`.
void set_kld(CandidateReport& candidate, double mean, double spread) {
  candidate.parts.clear();
  for (int part = 0; part < 16; ++part) {
    candidate.parts.push_back({100, 100 * (mean + (part % 2 == 0 ? spread : -spread))});
  }
  candidate.total.kld = mean;
  candidate.total.kld_error = spread / std::sqrt(15);
}

TEST_CASE("advice: the verdict says why its cache was chosen") {
  EvalReport report = plain_report();  // amax, unit, amax*2
  const auto line = [&] { return verdict_text(report).lines[1]; };
  set_kld(report.candidates[0], 0.01, 0.004);
  set_kld(report.candidates[1], 0.01, 0.004);
  set_kld(report.candidates[2], 0.03, 0.004);
  CHECK(line() ==
        "fp8_e4m3 amax has the least KL divergence of 2 FP8 caches, beyond two standard errors: "
        "0.01 ± 0.001 nats.");
  report.candidates[0].total.kld = std::nan("");
  report.candidates[2].total.kld = std::nan("");
  CHECK(line() ==
        "fp8_e4m3 amax is the first of 2 FP8 caches: none has a KL divergence that is a number.");
  report.candidates.resize(1);
  CHECK(line() == "The same memory holds 2 times the tokens.");
  report.candidates.insert(report.candidates.begin(), report.candidates[0]);
  report.candidates[0].dtype = DType::f8_e5m2;
  report.candidates[0].name = "fp8_e5m2";
  report.candidates[0].total.kld = 0.0001;
  CHECK(verdict_text(report).lines[2] ==
        "What is said of scales is about fp8_e4m3 amax, the first E4M3 cache: E5M2 is used without "
        "scales.");
}

TEST_CASE("advice: among caches that the text cannot tell apart the plainest is taken") {
  EvalReport report = plain_report();
  // amax*2 loses a little less on average. In pairs it loses more in every other part.
  set_kld(report.candidates[0], 0.0101, 0.004);
  set_kld(report.candidates[2], 0.0100, 0.0041 + 0.001);
  const CacheAdvice tie = advise(report);
  CHECK(tie.nearest == &report.candidates[2]);
  CHECK(tie.cache == &report.candidates[0]);
  CHECK(verdict_text(report).lines[1] ==
        "fp8_e4m3 amax was chosen of 2 FP8 caches because it is the plainest: its KL divergence, "
        "0.0101 ± 0.001 nats, differs from that of fp8_e4m3 amax*2 by less than two standard "
        "errors.");
  // If the parts differ only by the spread of the text, pairs tell the same means apart.
  set_kld(report.candidates[2], 0.0100, 0.004);
  CHECK(advise(report).cache == &report.candidates[2]);
  CHECK(advise(report).tied.empty());
}

TEST_CASE("advice: of caches as good, one with a scale per tensor goes before scales per head") {
  EvalReport report = plain_report();
  const auto name = [&](size_t i, const std::string& policy, float second) {
    report.candidates[i].policy = policy;
    report.candidates[i].name = "fp8_e4m3 " + policy;
    report.candidates[i].scales.emplace().layers = {{{1, second}, {1, second}}};
    if (second == 0) report.candidates[i].scales->layers = {{{1}, {1}}};
  };
  name(0, "head-loss", 1);
  name(1, "mse", 0);
  name(2, "loss", 0);
  set_kld(report.candidates[0], 0.0100, 0.004);
  set_kld(report.candidates[1], 0.0102, 0.0041 + 0.001);
  set_kld(report.candidates[2], 0.0101, 0.0041 + 0.001);
  const CacheAdvice advice = advise(report);
  CHECK(advice.nearest == &report.candidates[0]);
  CHECK(advice.cache == &report.candidates[2]);
  CHECK(advice.tied.size() == 2);
  set_kld(report.candidates[1], 0.0110, 0.004);
  set_kld(report.candidates[2], 0.0110, 0.004);
  CHECK(advise(report).cache == &report.candidates[0]);
}

TEST_CASE("advice: scales of 1 are a control, which is never advised beside others") {
  EvalReport report = plain_report();
  set_kld(report.candidates[0], 0.0066, 0.001);
  set_kld(report.candidates[1], 0.0050, 0.001);
  set_kld(report.candidates[2], 0.0070, 0.001);
  CHECK(advise(report).cache == &report.candidates[0]);
  CHECK(verdict_text(report).lines[2] == "Scales of 1, a control, lose 0.0016 less nats a token.");
  CHECK(serving_of(report).commands ==
        std::vector<std::string>{"fp8kv calibrate models/sample --data TEXT -o scales.json",
                                 "fp8kv inject models/sample --scales scales.json -o sample-fp8",
                                 "vllm serve sample-fp8 --kv-cache-dtype fp8"});
  report.candidates[1].total = report.candidates[0].total;
  report.candidates = {report.candidates[1]};
  const Serving serving = serving_of(report);
  REQUIRE(serving.commands.size() == 3);
  CHECK(serving.commands[0] == "fp8kv calibrate models/sample --data TEXT -o scales.json");
}

TEST_CASE("advice: formats beside FP8 are named, and advised where no FP8 cache was measured") {
  EvalReport report = plain_report();
  report.candidates[1].dtype = CacheType(KvFormat::int8_per_token_head);
  report.candidates[1].name = report.candidates[1].dtype_name = "int8_per_token_head";
  report.candidates[1].policy = "";
  set_kld(report.candidates[0], 0.02, 0.004);
  set_kld(report.candidates[1], 0.01, 0.004);
  set_kld(report.candidates[2], 0.03, 0.004);
  CHECK(advise(report).cache == &report.candidates[0]);
  CHECK(verdict_text(report).lines[2] ==
        "Other formats: int8_per_token_head loses less (0.01 ± 0.001 nats, 1,024 bytes a token).");
  report.candidates[1].total = report.candidates[0].total;
  report.candidates = {report.candidates[1]};
  CHECK(verdict_text(report).lines[0].starts_with("The cache holds: int8_per_token_head changes"));
  CHECK(serving_of(report).commands ==
        std::vector<std::string>{"vllm serve models/sample --kv-cache-dtype int8_per_token_head"});
}

TEST_CASE("advice: commands serve the cache that was measured") {
  EvalReport report = plain_report();
  report.candidates.resize(1);
  CandidateReport& cache = report.candidates[0];
  cache.dtype = DType::f8_e5m2;
  cache.scales.reset();
  cache.policy = "";
  cache.skipped = {0, 2};
  CHECK(serving_of(report).commands ==
        std::vector<std::string>{"vllm serve models/sample --kv-cache-dtype fp8_e5m2 "
                                 "--kv-cache-dtype-skip-layers 0 2"});
  report = plain_report();
  report.candidates.resize(1);
  report.candidates[0].dtype = CacheType(KvFormat::nvfp4);
  report.candidates[0].dtype_name = "nvfp4";
  report.candidates[0].scales->format = KvFormat::nvfp4;
  const Serving serving = serving_of(report);
  CHECK(serving.commands.front() ==
        "fp8kv calibrate models/sample --data TEXT --kv-cache-dtype nvfp4 -o scales.json");
  CHECK(serving.commands.back().starts_with("vllm serve sample-nvfp4 --kv-cache-dtype nvfp4"));
}

TEST_CASE("advice: a single prediction, and numbers that are none, decide nothing") {
  EvalReport report = plain_report();
  for (const size_t i : {0, 2}) report.candidates[i].parts = {{1, i == 0 ? 0.5 : 0.1}};
  report.candidates[0].total.kld = 0.5;
  report.candidates[2].total.kld = 0.1;
  CHECK(advise(report).cache == &report.candidates[0]);
  report.candidates[0].total.kld = report.candidates[0].parts[0].kld = HUGE_VAL;
  CHECK(advise(report).cache == &report.candidates[2]);
}

}  // namespace
}  // namespace fp8kv
