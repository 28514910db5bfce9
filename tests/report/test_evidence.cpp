#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "report/certificate.h"
#include "report/certificate_words.h"
#include "report/evidence.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

// The record of two layers of one head. `k` and `v` are the amax of layer 1's K and layer 0's V in
// half of the tokens.
Provenance counted(uint64_t tokens, uint64_t half_tokens, float k, float v) {
  Provenance from;
  from.windows = 8;
  from.tokens = tokens;
  from.amax = {{{4}, {8}, {1}}, {{16}, {2}, {1}}};
  from.parts.back() = {half_tokens, {{{4}, {v}, {1}}, {{k}, {2}, {1}}}};
  return from;
}

std::string too_little(const Provenance& from) {
  const TextEvidence evidence = text_evidence(from);
  return evidence.enough ? "enough" : too_little_text(evidence);
}

TEST_CASE("evidence: a thousand tokens are the least, grown or not") {
  CHECK(too_little(counted(1000, 500, 16, 8)) == "enough");
  CHECK(too_little(counted(1000, 500, 0, 1)) == "enough");
  CHECK(too_little(counted(999, 500, 16, 8)) == "999 tokens; 1 more are needed");
}

// One layer whose K reaches `amax`, and had reached `before` in half of the text.
LayerCertificate certified(float amax, float before) {
  KvScales scales;
  scales.layers = {{{amax / 448}, {1}}};
  Provenance& from = scales.provenance;
  from.windows = 8;
  from.tokens = 8000;
  from.amax = {{{amax}, {1}, {1}}};
  from.parts.back() = {4000, {{{before}, {1}, {1}}}};
  const OctaveCounts tame{0, 0, {5, 5, 1}};
  from.octaves = {{tame, tame}};
  return certify(scales, KvFormat::e4m3fn).layers[0];
}

TEST_CASE("evidence: a tensor that grows is safe at 1.0 if its room holds three more doublings") {
  // 112 has two octaves of room at 1.0. Three doublings by 58 % take 1.98 octaves, by 60 % 2.03.
  CHECK(certified(112, 112 / 1.58f).verdict == Verdict::unit_safe);
  const LayerCertificate grows = certified(112, 112 / 1.6f);
  CHECK(grows.verdict == Verdict::unknown);
  CHECK(grows.k.reason ==
        "K grew by 60 % when the text last doubled, with 2.0 octaves of room at 1.0");
  CHECK(certified(5.3f, 5.3f / 1.29f).verdict == Verdict::unit_safe);  // 6.4 octaves of room
  CHECK(certified(4, 0).verdict == Verdict::unknown);
  // Values beyond 448 are lost already, whatever more text brings.
  CHECK(certified(500, 100).verdict == Verdict::needs_scale);
}

TEST_CASE("evidence: one layer that still grows leaves the verdict of the others") {
  KvScales scales;
  scales.layers = {{{1}, {1}}, {{1}, {1}}};
  Provenance& from = scales.provenance;
  from.windows = 8;
  from.tokens = 8000;
  from.amax = {{{4}, {4}, {1}}, {{200}, {4}, {1}}};
  from.parts.back() = {4000, {{{4}, {4}, {1}}, {{100}, {4}, {1}}}};
  const OctaveCounts tame{0, 0, {5, 5, 1}};
  from.octaves = {{tame, tame}, {tame, tame}};
  CHECK(verdict_sentence(certify(scales, KvFormat::e4m3fn)) ==
        "layer 1 is not decided (layer 1: K grew by 100 % when the text last doubled, with 1.2 "
        "octaves of room at 1.0); 1.0 is safe in the other layer");
}

TEST_CASE("evidence: growth counts by doublings, where about half of the text is known") {
  // From 2,000 to 8,000 tokens are two doublings, of a fifth each.
  const TextEvidence two = text_evidence(counted(8000, 2000, 16 / 1.44f, 8));
  REQUIRE(two.growth);
  CHECK(two.growth->share == doctest::Approx(0.2).epsilon(1e-6));
  CHECK(two.growth->layer == 1);
  CHECK(two.growth->key);
  CHECK(two.enough);
  CHECK_FALSE(text_evidence(counted(8000, 1999, 8, 8)).growth);
  CHECK_FALSE(text_evidence(counted(8000, 6001, 8, 8)).growth);
  CHECK(text_evidence(counted(8000, 0, 8, 8)).enough);
}

TEST_CASE("evidence: says what each of the last doublings brought, in octaves") {
  Provenance from = counted(8000, 4000, 8, 8);  // K of layer 1 from 8 to 16
  CHECK(evidence_words(from).find("; when the text last doubled, amax grew by 1 octaves at most "
                                  "(layer 1 K)") != std::string::npos);
  from.parts[1] = {2000, {{{4}, {4}, {1}}, {{8}, {2}, {1}}}};
  from.parts[0] = {500, {{{1}, {4}, {1}}, {{8}, {2}, {1}}}};  // two doublings before a quarter
  const TextEvidence evidence = text_evidence(from);
  REQUIRE(evidence.earlier.size() == 2);
  CHECK(evidence.earlier[0].octaves() == doctest::Approx(1));
  CHECK(evidence.earlier[0].where() == "layer 0 V");
  CHECK(evidence.earlier[1].octaves() == doctest::Approx(1));
  CHECK(evidence.earlier[1].where() == "layer 0 K");
  CHECK(evidence_words(from).find(" octaves at most (layer 1 K), before that by 1 and 1") !=
        std::string::npos);
  // Without the figures for a quarter, those for an eighth say nothing.
  from.parts[1] = {};
  CHECK(text_evidence(from).earlier.empty());
}

TEST_CASE("evidence: what says nothing of its text is not enough") {
  CHECK(too_little({}) == "it is not known how much text was counted");
}

TEST_CASE("evidence: with too little text no layer is called safe, and what is lost stays lost") {
  KvScales scales;
  scales.layers = {{{2}, {0.01f}}, {{0.01f}, {0.01f}}};
  Provenance& from = scales.provenance;
  from.windows = 1;
  from.tokens = 10;
  from.amax = {{{896}, {4}, {1}}, {{4}, {4}, {1}}};
  const OctaveCounts tame{0, 0, {5, 5, 1}};
  from.octaves = {{{0, 0, {5, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, tame}, {tame, tame}};
  const Certificate certificate = certify(scales, KvFormat::e4m3fn);
  CHECK(verdict_sentence(certificate) == "too little text: 10 tokens; 990 more are needed");
  CHECK(certificate.layers[0].verdict == Verdict::needs_scale);
  CHECK(certificate.layers[0].v.reason == "too little text");
  CHECK(certificate.layers[1].verdict == Verdict::unknown);
  from.tokens = 1000;
  const Certificate enough = certify(scales, KvFormat::e4m3fn);
  CHECK(verdict_sentence(enough) == "layer 0 needs its scale; 1.0 is safe in the other layer");
}

TEST_CASE("evidence: the script that counts how often the rule holds has this rule") {
  const std::string script = R"(import sys
sys.path.insert(0, sys.argv[1])
from real.evidence import needed_room
for arguments in ((1, 1), (1, 1.05), (3, 4), (2, 4), (7, 100)):
    print(repr(needed_room(*arguments)))
)";
  const std::string scripts = (test::source_dir() / "scripts").string();
  const test::CliResult python =
      test::run_cli({"python3", "-B", "-c", script, scripts}, {.program = "/usr/bin/env"});
  if (python.exit_code == 127) {
    test::skip("python3 is not there");
    return;
  }
  REQUIRE(python.exit_code == 0);
  std::istringstream lines(python.out);
  const std::pair<double, double> amax[] = {{1, 1}, {1, 1.05}, {3, 4}, {2, 4}, {7, 100}};
  for (const auto& [half, whole] : amax) {
    double room = 0;
    REQUIRE(static_cast<bool>(lines >> room));
    const double ours =
        std::max(kLeastUnitSaturationMargin, TextEvidence::room_for(whole / half - 1));
    CHECK(room == doctest::Approx(ours).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace fp8kv
