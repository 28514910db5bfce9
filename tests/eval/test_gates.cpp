#include <cmath>

#include <doctest/doctest.h>

#include "eval/gates.h"
#include "support/expect_error.h"

using namespace fp8kv;

namespace {

EvalReport report_of_two() {
  EvalReport report;
  report.model = "models/<a>&\"b\"";
  CandidateReport good, bad;
  good.name = "fp8_e4m3 amax";
  good.total.ppl_delta = 0.001;
  good.total.top1 = 0.99;
  good.layers.resize(2);
  for (LayerErrors& layer : good.layers) layer.k.head_errors = layer.v.head_errors = {0};
  good.greedy = {{10, 64}, {64, 64}};
  bad = good;
  bad.name = "fp8_e4m3 unit";
  bad.total.ppl_delta = 0.02;
  bad.layers[1].v = {0.5, {0.5}, 200, 50, 0, 0, 0};
  bad.layers[0].k = {0.1, {0.1}, 200, 2, 0, 0, 0};
  bad.layers[1].attention_error = 0.25;
  report.candidates = {good, bad};
  return report;
}

std::vector<GateResult> check(const std::string& gate) {
  return check_gates(report_of_two(), {parse_gate(gate)});
}

std::string refusal(const std::string& text) {
  return test::error_of([&] { parse_gate(text); }, ErrorKind::usage);
}

}  // namespace

TEST_CASE("gates: an expression is metric, operator and number, blanks or not") {
  for (const char* text : {"ppl_delta>0.5%", " ppl_delta  >\t0.5 % ", "ppl_delta > 0.005"}) {
    const Gate gate = parse_gate(text);
    CHECK(gate.text == text);
    CHECK(gate.metric->name == "ppl_delta");
    CHECK((gate.comparison == Comparison::greater));
    CHECK(gate.bound == 0.005);
  }
  CHECK((parse_gate("top1 <= 1e-1").comparison == Comparison::less_equal));
  CHECK((parse_gate("top1 < 99%").comparison == Comparison::less));
  CHECK((parse_gate("kld >= -3").comparison == Comparison::greater_equal));
}

TEST_CASE("gates: what is no expression is refused, saying what was wrong") {
  CHECK(refusal("ppl_delta") == "'ppl_delta': has none of <, <=, > and >=");
  CHECK(refusal("kld > ") == "'kld > ': '' is no number");
  CHECK(refusal("kld > 1x") == "'kld > 1x': '1x' is no number");
  CHECK(refusal("kld > nan") == "'kld > nan': 'nan' is no number");
  CHECK(refusal("kld > 1%%") == "'kld > 1%%': '1%%' is no number");
  const std::string list =
      "ppl, ppl_delta, ppl_rise, kld, kld_p999, kld_max, top1, greedy, kv_error, attention_error, "
      "saturated, subnormal, zero, nonfinite and tokens";
  CHECK(refusal("kld => 1") == "'kld => 1': 'kld =' is none of " + list);
  CHECK(refusal("ppldelta > 1") ==
        "'ppldelta > 1': 'ppldelta' is none of " + list + " (did you mean 'ppl_delta'?)");
}

TEST_CASE("gates: each candidate passes or fails, with the value that decides") {
  const auto results = check("ppl_delta > 0.5%");
  REQUIRE(results.size() == 2);
  CHECK(!results[0].failed);
  CHECK(results[0].candidate == "fp8_e4m3 amax");
  CHECK(results[0].finding == "ppl_delta is 0.001");
  CHECK(results[1].failed);
  CHECK(results[1].candidate == "fp8_e4m3 unit");
  CHECK(results[1].finding == "ppl_delta is 0.02");
}

TEST_CASE("gates: of many values the worst decides and is named, on either side") {
  CHECK(check("saturated > 0")[0].failed == false);
  CHECK(check("saturated > 0")[1].finding == "saturated is 0.25 in layer 1 V");
  CHECK(check("kv_error >= 0.5")[1].failed);
  CHECK(check("attention_error > 25%")[1].failed == false);
  CHECK(check("attention_error >= 25%")[1].finding == "attention_error is 0.25 in layer 1");
  CHECK(check("greedy < 1")[0].finding == "greedy is 0.15625 in prompt 0");
  CHECK(check("greedy < 1")[0].failed);
  CHECK(check("top1 < 0.99")[0].failed == false);
}

TEST_CASE("gates: NaN fails every gate") {
  EvalReport report = report_of_two();
  report.candidates[0].total.kld = NAN;
  for (const char* text : {"kld > 1", "kld < 0"}) {
    const auto results = check_gates(report, {parse_gate(text)});
    CHECK(results[0].failed);
    CHECK(results[0].finding == "kld is nan");
    CHECK(!results[1].failed);
  }
}

TEST_CASE("gates: a value is shown in six digits, or in as many as tell it from the bound") {
  EvalReport report = report_of_two();
  report.candidates[0].total.kld = 0.000630824106676321;
  const auto finding = [&](const char* gate) {
    return check_gates(report, {parse_gate(gate)})[0].finding;
  };
  CHECK(finding("kld > 0.01") == "kld is 0.000630824");
  CHECK(finding("kld > 0.000630824") == "kld is 0.000630824106676321");
}

TEST_CASE("gates: what was not measured cannot pass") {
  EvalReport report = report_of_two();
  report.candidates[0].greedy = {};
  const auto results = check_gates(report, {parse_gate("greedy < 1")});
  CHECK(results[0].failed);
  CHECK(results[0].finding == "no greedy measured");
}

// A candidate with measured figures, without attention and greedy texts. See docs/accuracy.md.
CandidateReport measured(uint64_t tokens, double delta, double error, double kld, double top1,
                         double kv_error) {
  CandidateReport of;
  of.total.tokens = tokens;
  of.total.ppl_delta = delta;
  of.total.ppl_delta_error = error;
  of.total.kld = kld;
  of.total.top1 = top1;
  of.layers.resize(1);
  of.layers[0].k = {kv_error, {kv_error}};
  return of;
}

std::string default_failures(const CandidateReport& candidate) {
  EvalReport report;
  report.candidates = {candidate};
  std::string failed;
  for (const GateResult& each : check_gates(report, parse_gates(" default "))) {
    if (each.failed) failed += each.metric + " ";
  }
  return failed;
}

TEST_CASE("gates: the default set passes calibrated caches, on short texts and strange ones too") {
  CHECK(default_failures(measured(8160, -0.0007, 0.00055, 0.00045, 0.9953, 0.027)) == "");
  CHECK(default_failures(measured(126, 0.09054, 0.03087, 0.04136, 0.8651, 0.028)) == "");
  CHECK(default_failures(measured(126, 0.01307, 0.04558, 0.09136, 0.8651, 0.026)) == "");
  CHECK(default_failures(measured(2040, -0.00868, 0.01175, 0.07921, 0.8034, 0.028)) == "");
}

TEST_CASE("gates: the default set fails caches that scales of 1 broke, better perplexity or not") {
  CHECK(default_failures(measured(8160, -0.0069, 0.01, 0.53, 0.46, 0.9)) == "kld top1 kv_error ");
  CHECK(default_failures(measured(126, -0.02404, 0.13189, 0.5055, 0.5794, 1)) ==
        "kld top1 kv_error ");
  CHECK(default_failures(measured(126, 0.38819, 0.1016, 0.23923, 0.7619, 0.843)) ==
        "kld ppl_rise kv_error ");
  CHECK(default_failures(measured(8160, 0.1, 0.02, 0.12, 0.83, 0.621)) == "ppl_rise kv_error ");
  CHECK(default_failures(measured(99, 0, 0, 0, 1, 0)) == "tokens ");
  CHECK(default_failures(measured(500, NAN, NAN, NAN, 0, 0)) == "kld top1 ppl_rise ");
}

TEST_CASE("gates: the rise that is sure is what two standard errors leave") {
  const CandidateReport of = measured(500, 0.0625, 0.015625, 0, 1, 0);
  CHECK(check_gate(of, parse_gate("ppl_rise > 3.125%")).finding == "ppl_rise is 0.03125");
  CHECK(!check_gate(of, parse_gate("ppl_rise > 3.125%")).failed);
  CHECK(check_gate(of, parse_gate("ppl_rise > 3%")).failed);
}

TEST_CASE("gates: perplexity alone is no proof that a cache works") {
  const auto alone = [](const std::vector<std::string>& texts) {
    std::vector<Gate> gates;
    for (const std::string& text : texts) {
      for (const Gate& gate : parse_gates(text)) gates.push_back(gate);
    }
    return see_perplexity_alone(gates);
  };
  CHECK_FALSE(alone({}));
  CHECK(alone({"ppl_delta > 1%"}));
  CHECK(alone({"ppl > 5", "ppl_rise > 1%"}));
  CHECK_FALSE(alone({"ppl_delta > 1%", "kld > 0.1"}));
  CHECK_FALSE(alone({"default"}));
}
