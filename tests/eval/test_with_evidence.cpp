#include <doctest/doctest.h>

#include "eval/with_evidence.h"
#include "policy/make_scales.h"
#include "support/magnitudes.h"

namespace fp8kv {
namespace {

// A report with magnitudes of two layers, and a candidate with the scales of a policy.
EvalReport report_with(const char* policy) {
  EvalReport report;
  for (const float amax : {3.0f, 7.0f}) {
    LayerMagnitudes& layer = report.magnitudes.emplace_back();
    layer.q = layer.k = {test::counts_of({amax, 1})};
    layer.v = {test::counts_of({amax / 2})};
  }
  CandidateReport& candidate = report.candidates.emplace_back();
  candidate.dtype = DType::f8_e4m3;
  candidate.scales = make_scales(report.magnitudes, parse_policy(policy));
  return report;
}

}  // namespace

TEST_CASE("with_evidence: how the scales were made is kept beside what was seen") {
  for (const char* policy : {"p99.9", "mse", "shared*2"}) {
    CAPTURE(policy);
    const EvalReport report = report_with(policy);
    const KvScales scales = with_evidence(report, report.candidates[0]);
    CHECK(scales.layers == report.candidates[0].scales->layers);
    CHECK(policy_name(scales) == policy);
    CHECK(policy_name(policy_of(scales)) == policy);
    CHECK(scales.provenance.amax[1].k == std::vector<float>{7});
  }
  const EvalReport twice = report_with("amax*2");
  CHECK(policy_name(policy_of(with_evidence(twice, twice.candidates[0]))) == "amax*2");
}

TEST_CASE(
    "with_evidence: a candidate without scales has 1 in every layer with a cache, in its own "
    "format") {
  EvalReport report = report_with("amax");
  report.candidates[0].scales.reset();
  report.candidates[0].dtype = DType::f8_e4m3fnuz;
  report.magnitudes.emplace_back();  // a layer without a cache
  const KvScales scales = with_evidence(report, report.candidates[0]);
  CHECK(scales.format == KvFormat::e4m3fnuz);
  CHECK(scales.layers == std::vector<LayerScales>{{{1}, {1}}, {{1}, {1}}, {}});
  CHECK(policy_name(scales) == "");
}

}  // namespace fp8kv
