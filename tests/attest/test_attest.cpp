// attest() with simulated servers. A prediction is the sum of what a cache does to a token and of
// noise that differs from computation to computation, like the roundings of a real model.
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "attest/attest.h"
#include "base/text.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv {
namespace {

constexpr int64_t kLayers = 4;
constexpr size_t kTokens = 63;

KvScales demo_scales() {
  KvScales scales;
  for (int64_t i = 0; i < kLayers; ++i) {
    const float k = 0.03f + 0.01f * static_cast<float>(i);
    scales.layers.push_back({{k}, {k / 3}});
  }
  return scales;
}

// A name for what a cache does to the numbers. Scales that differ by 2 do the same to them.
std::string effect_of(const ModelCache& cache, const KvScales* scales) {
  std::string name = cat(static_cast<int>(cache.type.k), " ", cache.arithmetic.toward_zero, " ",
                         cache.arithmetic.fp8_attention);
  if (scales == nullptr) return name;
  for (const LayerScales& layer : scales->layers) {
    int exponent = 0;
    name += cat(" ", std::frexp(layer.k[0], &exponent), " ", std::frexp(layer.v[0], &exponent));
  }
  return name;
}

std::string identity_of(const ModelCache& cache, const KvScales* scales) {
  std::string name = effect_of(cache, scales);
  if (scales != nullptr) name += cat(" by ", scales->layers[0].k[0]);
  return name;
}

std::vector<double> normal(const std::string& seed, size_t window) {
  std::seed_seq sequence(seed.begin(), seed.end());
  std::mt19937 random(sequence);
  random.discard(2 * kTokens * window);
  const auto uniform = [&] { return (static_cast<double>(random()) + 1) / 4294967297.0; };
  std::vector<double> found(kTokens);
  for (double& each : found) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    each = radius * std::cos(2 * std::numbers::pi * uniform());
  }
  return found;
}

// How a simulated model differs from one whose FP8 caches have nothing in common.
struct Simulated {
  double noise = 0.07;     // of a computation with an FP8 cache
  double noise_16 = 0.01;  // of one with a 16-bit cache
  double common = 0;       // the share of the effect that all FP8 caches have in common, squared
};

// Log probabilities of one window, computed with a cache. `run` makes the noise.
std::vector<double> computed(const ModelCache& cache, const KvScales* scales, size_t window,
                             const std::string& run, const Simulated& model) {
  std::vector<double> found(kTokens, -3.0);
  if (!is_compute_dtype(cache.type)) {
    const std::vector<double> own = normal("effect " + effect_of(cache, scales), window);
    const std::vector<double> common = normal("effect of all", window);
    for (size_t i = 0; i < kTokens; ++i) {
      found[i] +=
          0.2 * (std::sqrt(model.common) * common[i] + std::sqrt(1 - model.common) * own[i]);
    }
  }
  const double size = is_compute_dtype(cache.type) ? model.noise_16 : model.noise;
  const std::vector<double> noise = normal("noise " + run, window);
  for (size_t i = 0; i < kTokens; ++i) found[i] += size * noise[i];
  return found;
}

std::vector<Hypothesis> hypotheses() {
  ModelConfig config;
  config.dtype = DType::bf16;
  return main_hypotheses(config, demo_scales(), {});
}

// Attests a server that computes with `truth`.
AttestReport attest_server(const Hypothesis& truth, const std::string& seed, size_t windows = 64,
                           const Simulated& model = {}) {
  AttestSides sides;
  sides.ask = [&](size_t window) {
    AskedWindow asked;
    asked.ids.assign(kTokens + 1, static_cast<int32_t>(window));
    asked.log_probs = computed(truth.cache, truth.scales ? &*truth.scales : nullptr, window,
                               "server " + seed, model);
    return asked;
  };
  sides.predict = [&](const std::vector<std::vector<int32_t>>& texts,
                      const std::vector<Lane>& lanes) {
    std::vector<std::vector<double>> all;
    for (const Lane& lane : lanes) {
      auto& of_lane = all.emplace_back();
      for (const auto& text : texts) {
        const std::string run = cat(seed, identity_of(lane.dtype, lane.scales));
        const auto found =
            computed(lane.dtype, lane.scales, static_cast<size_t>(text[0]), run, model);
        of_lane.insert(of_lane.end(), found.begin(), found.end());
      }
    }
    return all;
  };
  return attest(hypotheses(), sides, {.level = 0.01, .windows = windows});
}

Hypothesis missing(int64_t layer) {
  for (const Hypothesis& each : hypotheses()) {
    if (each.outcome != Outcome::these_scales) continue;
    for (const Hypothesis& made : missing_layers(each)) {
      if (made.layer == layer) return made;
    }
  }
  FAIL("no such layer");
  return {};
}

}  // namespace

TEST_CASE("attest: every cache is named, in each of 10 servers with other noise") {
  std::vector<Hypothesis> truths = hypotheses();
  truths.push_back(missing(0));
  truths.push_back(missing(3));
  for (const Hypothesis& truth : truths) {
    const bool alike = truth.outcome == Outcome::doubled || truth.outcome == Outcome::halved;
    for (int server = 0; server < 10; ++server) {
      CAPTURE(truth.name);
      CAPTURE(server);
      const AttestReport report = attest_server(truth, cat(server));
      CHECK(report.verdict == AttestVerdict::fits);
      const Hypothesis& best = report.hypotheses[report.best];
      if (alike) {
        CHECK(best.outcome == Outcome::these_scales);
        CHECK(best.cache.arithmetic == truth.cache.arithmetic);
      } else {
        CHECK(best.name == truth.name);
      }
    }
  }
}

TEST_CASE("attest: caches that give the same numbers are all left, and layers are seen") {
  const AttestReport report = attest_server(hypotheses()[1], "1");
  std::vector<std::string> left;
  for (const size_t h : report.left) left.push_back(outcome_text(report.hypotheses[h]));
  CHECK(left ==
        std::vector<std::string>{"these scales", "these scales times 2", "these scales / 2"});
  CHECK(report.seen_layers == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(report.unseen_layers.empty());
}

TEST_CASE("attest: a server with other scales fits none") {
  Hypothesis other = hypotheses()[1];
  for (LayerScales& layer : other.scales->layers) layer.k[0] *= 1.5f;
  CHECK(attest_server(other, "1").verdict == AttestVerdict::none);
}

TEST_CASE("attest: other scales are not taken for these where all FP8 caches are alike") {
  Hypothesis other = hypotheses()[1];
  for (LayerScales& layer : other.scales->layers) layer.k[0] *= 1.5f;
  for (int server = 0; server < 10; ++server) {
    CAPTURE(server);
    const AttestReport report =
        attest_server(other, cat(server), 64, {.noise = 0.04, .common = 0.75});
    CHECK(report.evidence.explained(1) > 0.05);
    CHECK_FALSE(report.evidence.is_excluded(1));
    const bool fits = report.verdict == AttestVerdict::fits;
    CHECK_FALSE((fits && report.hypotheses[report.best].outcome == Outcome::these_scales));
    const AttestReport right =
        attest_server(hypotheses()[1], cat(server), 64, {.noise = 0.04, .common = 0.75});
    CHECK(right.verdict == AttestVerdict::fits);
    CHECK(right.hypotheses[right.best].outcome == Outcome::these_scales);
  }
}

TEST_CASE("attest: a 16-bit server is named although its noise is half of what FP8 costs") {
  const Hypothesis truth = hypotheses()[0];
  for (int server = 0; server < 10; ++server) {
    CAPTURE(server);
    const AttestReport named = attest_server(truth, cat(server), 64, {.noise_16 = 0.08});
    CHECK(named.evidence.departure(1) > 0.4);
    CHECK(named.verdict == AttestVerdict::fits);
    CHECK(named.best == 0);
    // If the noise is nearly as large, FP8 with other scales would look the same.
    const AttestReport unclear = attest_server(truth, cat(server), 64, {.noise_16 = 0.13});
    CHECK(unclear.verdict == AttestVerdict::undecided);
    CHECK(unclear.best == 0);
  }
}

TEST_CASE("attest: one window decides nothing") {
  CHECK(attest_server(hypotheses()[1], "1", 1).verdict == AttestVerdict::undecided);
}

}  // namespace fp8kv
