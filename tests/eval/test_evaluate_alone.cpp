// Every cache of an evaluation, against the same cache alone.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "calib/windows/window_plan.h"
#include "eval/evaluate.h"
#include "policy/make_scales.h"
#include "support/models/evaluated_model.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"
#include "support/models/streamed_model.h"
#include "support/models/windows.h"

using namespace fp8kv;
using test::candidate;
using test::run;
using test::scales_by;
using test::windows_of;
using Model = test::EvaluatedModel;
using WindowList = std::vector<std::vector<int32_t>>;

namespace {

// log softmax of a row, by plain loops.
std::vector<double> log_shares(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  std::vector<double> shares;
  for (const float logit : logits) shares.push_back(double{logit} - std::log(sum));
  return shares;
}

struct Distance {
  double nll = 0, kld = 0, agree = 0;
  double count = 0;
};

using Logits = std::vector<std::vector<float>>;  // [tokens, vocab_size]

// The logits of a cache that runs alone, without the evaluation's code. [windows]
template <class Model>
std::vector<Logits> run_alone(const Model& model, const WindowList& windows,
                              const test::RunSettings& settings) {
  const auto backend = make_cpu_backend(1);
  std::vector<Logits> all;
  for (const auto& ids : windows) {
    all.push_back(test::run_model(model.checkpoint, model.config, *backend, ids, settings));
  }
  return all;
}

Distance distance_between(const std::vector<Logits>& baseline, const std::vector<Logits>& other,
                          const WindowList& windows) {
  Distance distance;
  for (size_t window = 0; window < windows.size(); ++window) {
    const Logits &a = baseline[window], &b = other[window];
    const std::vector<int32_t>& ids = windows[window];
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto p = log_shares(a[i]), q = log_shares(b[i]);
      distance.nll -= q[static_cast<size_t>(ids[i + 1])];
      for (size_t v = 0; v < p.size(); ++v) distance.kld += std::exp(p[v]) * (p[v] - q[v]);
      distance.agree += std::max_element(p.begin(), p.end()) - p.begin() ==
                                std::max_element(q.begin(), q.end()) - q.begin()
                            ? 1
                            : 0;
      ++distance.count;
    }
  }
  return distance;
}

void check_same(const TokenFigures& a, const TokenFigures& b) {
  CHECK(a.first_depth == b.first_depth);
  CHECK(a.end_depth == b.end_depth);
  CHECK(a.tokens == b.tokens);
  CHECK(a.nll == b.nll);
  CHECK(a.nll_error == b.nll_error);
  CHECK(a.perplexity == b.perplexity);
  CHECK(a.perplexity_error == b.perplexity_error);
  CHECK(a.ppl_delta == b.ppl_delta);
  CHECK(a.ppl_delta_error == b.ppl_delta_error);
  CHECK(a.kld == b.kld);
  CHECK(a.kld_p999 == b.kld_p999);
  CHECK(a.kld_max == b.kld_max);
  CHECK(a.top1 == b.top1);
}

void check_same(const CacheErrors& a, const CacheErrors& b) {
  CHECK(a.relative_error == b.relative_error);
  CHECK(a.head_errors == b.head_errors);
  CHECK(a.values == b.values);
  CHECK(a.saturated == b.saturated);
  CHECK(a.subnormal == b.subnormal);
  CHECK(a.zero == b.zero);
  CHECK(a.nonfinite_unclamped == b.nonfinite_unclamped);
}

void check_same(const CandidateReport& a, const CandidateReport& b) {
  check_same(a.total, b.total);
  REQUIRE(a.depths.size() == b.depths.size());
  for (size_t i = 0; i < a.depths.size(); ++i) check_same(a.depths[i], b.depths[i]);
  REQUIRE(a.layers.size() == b.layers.size());
  for (size_t i = 0; i < a.layers.size(); ++i) {
    CHECK(a.layers[i].attention_error == b.layers[i].attention_error);
    check_same(a.layers[i].k, b.layers[i].k);
    check_same(a.layers[i].v, b.layers[i].v);
  }
  CHECK(a.greedy.agreed == b.greedy.agreed);
  CHECK(a.greedy.length == b.greedy.length);
}

}  // namespace

TEST_CASE("evaluate: every cache gives what it gives alone, whichever others run beside it") {
  const Model model(DType::f16);
  const WindowList windows = windows_of({70, 2, 33, 128, 64});
  const KvScales amax = scales_by("amax", model, windows);
  const KvScales half = scales_by("amax*0.25", model, windows);
  const std::vector<CandidateReport> candidates = {
      candidate("fn", DType::f8_e4m3, amax),
      candidate("half", DType::f16),
      candidate("fnuz", DType::f8_e4m3fnuz, amax),
      candidate("e5m2", DType::f8_e5m2),
      candidate("bf16", DType::bf16),
      candidate("fn clipped", DType::f8_e4m3, half),
      candidate("fnuz clipped", DType::f8_e4m3fnuz, half)};
  const EvalReport report =
      run({model.checkpoint, model.config}, windows, candidates, {.baseline = DType::f16});
  CHECK(report.baseline.total.tokens == 69 + 1 + 32 + 127 + 63);
  CHECK(report.baseline.total.kld == 0);
  const std::vector<Logits> baseline = run_alone(model, windows, {.cache_dtype = DType::f16});
  for (const CandidateReport& each : report.candidates) {
    INFO(each.name);
    const Distance alone = distance_between(
        baseline,
        run_alone(model, windows,
                  {.cache_dtype = each.dtype, .scales = each.scales ? &*each.scales : nullptr}),
        windows);
    // Windows alone and in a batch differ by f32 roundings: 2^-24 / sqrt(3) on average. A sum of 32
    // products is off by sqrt(32) times that, 2e-7 for logits of about 1.
    // This moves a log probability by at most 4e-7, and five times that with earlier layers. It
    // moves a divergence D by 4e-7 * sqrt(2 D).
    // Over 292 tokens the signs average out to a seventeenth: 1e-8 for D = 9e-2.
    CHECK(std::abs(each.total.nll - alone.nll / alone.count) < 2e-6);
    CHECK(each.total.kld < 9e-2);
    CHECK(std::abs(each.total.kld - alone.kld / alone.count) < 1e-8);
    CHECK(each.total.top1 == doctest::Approx(alone.agree / alone.count).epsilon(1e-12));
    check_same(each, run({model.checkpoint, model.config}, windows,
                         {candidates[static_cast<size_t>(&each - report.candidates.data())]},
                         {.baseline = DType::f16})
                         .candidates[0]);
  }
  CHECK(report.candidates[0].total.kld > 1e-5);
  check_same(report.candidates[0], report.candidates[2]);  // the same values, twice the scale
  CHECK(report.candidates[5].total.nll != report.candidates[6].total.nll);  // differ: both clip
  CHECK(report.candidates[1].total.kld == 0);                               // the baseline itself
  CHECK(report.candidates[1].layers[1].attention_error == 0);
}

namespace {

// Checks each candidate against a model that has this cache alone. The windows fill several
// batches, because caches that later layers read hold all of them.
void check_candidates_alone(const test::FamilyModel& model) {
  WindowList windows;
  for (size_t i = 0; i < 60; ++i) {
    windows.push_back(model.ids);
    std::rotate(windows[i].begin(), windows[i].begin() + static_cast<std::ptrdiff_t>(i % 37),
                windows[i].end());
  }
  Log log(Verbosity::quiet);
  const auto backend = make_cpu_backend(2);
  const KvScales scales =
      make_scales(collect_magnitudes({model.checkpoint, model.config, *backend}, windows, log),
                  parse_policy("amax"), model.config.latent.has_value());
  const std::vector<CandidateReport> candidates = {candidate("fn", DType::f8_e4m3, scales),
                                                   candidate("e5m2", DType::f8_e5m2),
                                                   candidate("again", DType::f8_e4m3, scales)};
  const EvalReport report =
      run({model.checkpoint, model.config}, windows, candidates, {.baseline = DType::f32});
  REQUIRE(plan_windows(windows).batches.size() > 1);
  const std::vector<Logits> baseline = run_alone(model, windows, {.cache_dtype = DType::f32});
  for (const CandidateReport& each : report.candidates) {
    INFO(each.name);
    const Distance alone = distance_between(
        baseline,
        run_alone(model, windows,
                  {.cache_dtype = each.dtype, .scales = each.scales ? &*each.scales : nullptr}),
        windows);
    CHECK(each.total.kld > 1e-5);
    // All windows have 40 rows, too many for the CPU's path for few rows (kMostDotRows). So a row
    // has the same bits alone and in a batch, and values round to the same codes.
    // Only the order of a sum of 2,340 doubles differs. Terms are at most about ln(77), so the mean
    // is off by at most 2340 * 4.4 * 2^-53 = 1.2e-12.
    CHECK(std::abs(each.total.nll - alone.nll / alone.count) < 2e-12);
    CHECK(std::abs(each.total.kld - alone.kld / alone.count) < 2e-12);
    for (size_t layer = 0; layer < each.layers.size(); ++layer) {
      const bool writes = model.config.writes_cache(static_cast<int64_t>(layer));
      CHECK(each.layers[layer].has_cache() == writes);
      CHECK((each.layers[layer].k.relative_error > 0) == writes);
    }
  }
}

}  // namespace

TEST_CASE("evaluate: layers that read another's cache read that of their own candidate") {
  const test::FamilyModel model("gemma4");
  REQUIRE(model.config.shares_caches(model.config.n_layers()));
  check_candidates_alone(model);
}

TEST_CASE("evaluate: states are each candidate's own, and layers without a cache have no errors") {
  for (const char* name : {"qwen3-next", "granite4", "nemotron-h-new-keys", "falcon-h1"}) {
    CAPTURE(std::string(name));
    check_candidates_alone(test::FamilyModel(name));
  }
}

TEST_CASE("evaluate: each candidate's indexers choose by its own rows") {
  for (const char* name : {"deepseek-v32", "glm-moe-dsa-shared"}) {
    CAPTURE(std::string(name));
    check_candidates_alone(test::FamilyModel(name));
  }
}

TEST_CASE("evaluate: the same bits for any number of threads") {
  const Model model(DType::bf16);
  const WindowList windows = windows_of({100, 3,   90,  17,  128, 128, 64,  128, 128, 128, 128,
                                         128, 128, 128, 128, 128, 128, 128, 128, 128, 128});
  const std::vector<CandidateReport> candidates = {
      candidate("amax", DType::f8_e4m3, scales_by("amax", model, windows)),
      candidate("p99", DType::f8_e4m3, scales_by("p99", model, windows)),
      candidate("e5m2", DType::f8_e5m2)};
  std::vector<EvalReport> reports;
  for (const int threads : {1, 2, 3, 4}) {
    reports.push_back(run({model.checkpoint, model.config}, windows, candidates,
                          {.baseline = DType::bf16}, threads));
  }
  for (const EvalReport& each : reports) {
    check_same(each.baseline, reports[0].baseline);
    for (size_t i = 0; i < 3; ++i) check_same(each.candidates[i], reports[0].candidates[i]);
    CHECK(test::same_bits(each.magnitudes, reports[0].magnitudes));
  }
}
