#include <cmath>

#include <doctest/doctest.h>

#include "eval/token_figures.h"
#include "json/json.h"
#include "support/skip.h"

using namespace fp8kv;

namespace {

const Json& golden() {
  static const Json json = Json::read(test::source_dir() / "tests/golden/eval-figures.json");
  return json;
}

std::vector<double> doubles(const Json& json) {
  std::vector<double> values;
  for (size_t i = 0; i < json.size(); ++i) values.push_back(json[i].as_double());
  return values;
}

std::vector<float> floats(const Json& json) {
  const std::vector<double> values = doubles(json);
  return {values.begin(), values.end()};
}

// A sum of 1,500 doubles near 1 loses about 1500 * 2^-53 = 2e-13 of its value, and so does SciPy's.
bool close(double actual, double expected) {
  return std::abs(actual - expected) <= 1e-12 + 1e-11 * std::abs(expected);
}

void check_figures(const TokenFigures& actual, const Json& expected) {
  CHECK(actual.tokens == static_cast<uint64_t>(expected.at("tokens").as_int()));
  const auto check = [&](const char* name, double value) {
    INFO(name);
    CHECK(close(value, expected.at(name).as_double()));
  };
  check("nll", actual.nll);
  check("nll_error", actual.nll_error);
  check("perplexity", actual.perplexity);
  check("perplexity_error", actual.perplexity_error);
  check("ppl_delta", actual.ppl_delta);
  check("ppl_delta_error", actual.ppl_delta_error);
  check("kld", actual.kld);
  check("kld_error", actual.kld_error);
  check("kld_p999", actual.kld_p999);
  check("kld_max", actual.kld_max);
  check("top1", actual.top1);
  CHECK(actual.first_tokens == static_cast<uint64_t>(expected.at("first_tokens").as_int()));
  check("first_kld", actual.first_kld);
  check("first_kld_error", actual.first_kld_error);
  check("later_kld", actual.later_kld);
  check("later_kld_error", actual.later_kld_error);
  check("heavy_share", actual.heavy_share);
}

}  // namespace

TEST_CASE("row distribution: divergence, likelihood and best id are SciPy's") {
  for (size_t i = 0; i < golden().at("rows").size(); ++i) {
    INFO("row " << i);
    const Json row = golden().at("rows")[i];
    const std::vector<float> a = floats(row.at("a")), b = floats(row.at("b"));
    RowDistribution baseline, other;
    baseline.set(a);
    other.set(b);
    CHECK(close(baseline.divergence(other), row.at("kld").as_double()));
    CHECK(close(other.nll(static_cast<int32_t>(row.at("target").as_int())),
                row.at("nll").as_double()));
    CHECK(baseline.best() == row.at("best_a").as_int());
    CHECK(other.best() == row.at("best_b").as_int());
  }
}

TEST_CASE("row distribution: equal rows are 0 apart, never below, and NaN is not hidden") {
  const std::vector<float> a = {0.1f, -7.3f, 2.25f, 1e-3f};
  const std::vector<float> bad = {0.1f, NAN, 2.25f, 1e-3f};
  RowDistribution one, two, broken;
  one.set(a);
  two.set(a);
  broken.set(bad);
  CHECK(one.divergence(two) == 0);
  CHECK(std::isnan(one.divergence(broken)));
  CHECK(std::isnan(broken.nll(0)));
}

TEST_CASE("figures: means, errors, percentiles and buckets of depth are NumPy's") {
  const Json tokens = golden().at("tokens");
  TokenLog log, baseline;
  log.nll = doubles(tokens.at("nll"));
  log.kld = doubles(tokens.at("kld"));
  for (const double agree : doubles(tokens.at("agree"))) log.agree.push_back(agree != 0);
  baseline.nll = doubles(tokens.at("baseline_nll"));
  std::vector<int64_t> depths;
  for (const double depth : doubles(tokens.at("depths"))) {
    depths.push_back(static_cast<int64_t>(depth));
  }
  const FiguresByDepth found = figures_by_depth(log, baseline, depths);
  check_figures(found.total, tokens.at("total"));
  REQUIRE(found.buckets.size() == tokens.at("buckets").size());
  for (size_t i = 0; i < found.buckets.size(); ++i) {
    const Json expected = tokens.at("buckets")[i];
    check_figures(found.buckets[i], expected);
    CHECK(found.buckets[i].first_depth == expected.at("first_depth").as_int());
    CHECK(found.buckets[i].end_depth == expected.at("end_depth").as_int());
  }
}

TEST_CASE("figures: what follows the depths in a log does not count") {
  TokenLog log;
  log.nll = {1, 3, 100};
  log.kld = {0, 0, 100};
  log.agree = {1, 1, 0};
  const std::vector<int64_t> depths = {1, 2};
  const TokenFigures total = figures_by_depth(log, log, depths).total;
  CHECK(total.nll == 2);
  CHECK(total.kld_max == 0);
  CHECK(total.top1 == 1);
  CHECK(total.ppl_delta == 0);
}

TEST_CASE("percentile: interpolates between ranks as NumPy") {
  const Json cases = golden().at("percentiles");
  for (size_t i = 0; i < cases.size(); ++i) {
    CHECK(close(percentile(doubles(cases[i].at("values")), cases[i].at("share").as_double()),
                cases[i].at("result").as_double()));
  }
}
