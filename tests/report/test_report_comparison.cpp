// Caches and tensors that are compared on a page: one axis for charts, and signs in the table.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "report/pages/html_report.h"
#include "support/markup.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

using test::Tag;

EvalReport plain_report() {
  return test::sample_report({.layers = 6, .name = ""});
}

// The texts and heights of the ticks of the y axis.
std::vector<std::string> y_ticks(const EvalReport& report, const std::string& chart) {
  std::vector<std::string> ticks;
  for (const Tag& tag : test::drawing_of(html_report(report), chart)) {
    if (tag.name != "text" || tag.is_end || tag.attributes.at("text-anchor") != "end") continue;
    ticks.push_back(tag.text + " at " + tag.attributes.at("y"));
  }
  return ticks;
}

TEST_CASE("report: charts of K and of V have one y axis") {
  EvalReport report = plain_report();
  REQUIRE_FALSE(y_ticks(report, "range-K").empty());
  for (LayerMagnitudes& layer : report.magnitudes) {
    for (MagnitudeCounts& head : layer.v) head.amax *= 1e6f;
  }
  for (LayerErrors& layer : report.candidates[0].layers) layer.k.relative_error = 0.9;
  CHECK(y_ticks(report, "range-K") == y_ticks(report, "range-V"));
  CHECK(y_ticks(report, "error-K") == y_ticks(report, "error-V"));
  CHECK(y_ticks(report, "range-K") != y_ticks(plain_report(), "range-K"));
}

TEST_CASE("report: a sign for each difference says whether it is beyond chance") {
  EvalReport report = test::sample_report({.candidates = 3, .name = ""});
  for (CandidateReport& each : report.candidates) {
    each.total.ppl_delta = 0.01;
    each.total.ppl_delta_error = 0.004;
    for (PartSums& part : each.parts) part.kld = 0.001 * double(part.tokens);
    each.total.kld = 0.001;
  }
  report.candidates[1].total.ppl_delta_error = 0.006;
  report.candidates[2].total.ppl_delta = -0.01;
  for (PartSums& part : report.candidates[2].parts) part.kld *= 2;
  report.candidates[2].total.kld = 0.002;
  std::vector<std::string> signs;
  for (const Tag& tag : test::tags_of(html_report(report))) {
    if (tag.name != "td" || tag.is_end) continue;
    for (const char* sign : {" ▲", " ▼"}) {
      if (tag.text.ends_with(sign)) signs.push_back(sign);
    }
  }
  // The first cache's change; nothing of the second; change and KLD of the third.
  CHECK(signs == std::vector<std::string>{" ▲", " ▼", " ▲"});
}

}  // namespace
}  // namespace fp8kv
