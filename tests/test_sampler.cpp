#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "text/sampler.h"

namespace fp8kv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> logits(size);
  // A coarse grid, so that many are equal.
  for (float& logit : logits) logit = static_cast<float>(std::floor(rng.uniform() * 24)) / 4;
  return logits;
}

// What may be picked and how likely, by sorting everything.
std::map<int32_t, double> distribution(const std::vector<float>& logits,
                                       const SamplingOptions& options) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < ids.size()) {
    ids.resize(static_cast<size_t>(options.top_k));
  }
  std::vector<double> weights;
  for (const int32_t id : ids) {
    weights.push_back(
        std::exp(double{logits[static_cast<size_t>(id)]} / double{options.temperature}));
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::map<int32_t, double> kept;
  double sum = 0;
  for (size_t i = 0; i < ids.size() && (i == 0 || sum < double{options.top_p} * total); ++i) {
    sum += weights[i];
    kept[ids[i]] = weights[i];
  }
  for (auto& [id, weight] : kept) weight /= sum;
  return kept;
}

TEST_CASE("sampler: at temperature 0 the largest logit wins, the lowest id among equals") {
  Sampler sampler({}, 0);
  CHECK(sampler.pick(std::vector<float>{1, 3, 2, 3}) == 1);
  CHECK(sampler.pick(std::vector<float>{-kInfinity, -kInfinity}) == 0);
  CHECK(sampler.pick(std::vector<float>{-0.0f, 0.0f}) == 0);
  CHECK(sampler.pick(std::vector<float>{5}) == 0);
}

TEST_CASE("sampler: picks as often as the distribution says, and nothing outside of it") {
  const SamplingOptions grid[] = {
      {1.0f, 0, 1.0f}, {0.5f, 5, 1.0f},  {2.0f, 0, 0.5f},  {0.7f, 7, 0.8f},
      {1.0f, 1, 1.0f}, {1.0f, 0, 1e-6f}, {1.0f, 99, 0.9f}, {3.0f, 3, 0.99f},
  };
  constexpr int kDraws = 20000;
  for (const SamplingOptions& options : grid) {
    CAPTURE(options.temperature);
    CAPTURE(options.top_k);
    CAPTURE(options.top_p);
    const std::vector<float> logits = random_logits(20, 3);
    const auto expected = distribution(logits, options);
    Sampler sampler(options, 0);
    std::map<int32_t, int> counts;
    for (int i = 0; i < kDraws; ++i) ++counts[sampler.pick(logits)];
    for (const auto& [id, count] : counts) CHECK(expected.contains(id));
    for (const auto& [id, share] : expected) {
      // Five standard deviations of a binomial; the seed is fixed.
      const double deviation = std::sqrt(share * (1 - share) / kDraws);
      CHECK(std::abs(double(counts[id]) / kDraws - share) <= 5 * deviation + 1e-12);
    }
  }
}

TEST_CASE("sampler: of equal logits top_k and top_p keep the lower ids") {
  const std::vector<float> logits(50, 1.5f);
  Sampler top_k({1.0f, 3, 1.0f, 1}, 0);
  Sampler top_p({1.0f, 0, 0.06f, 1}, 0);  // three of fifty reach it
  for (int i = 0; i < 300; ++i) {
    CHECK(top_k.pick(logits) < 3);
    CHECK(top_p.pick(logits) < 3);
  }
}

TEST_CASE("sampler: the seed and the sequence decide what is picked") {
  const std::vector<float> logits = random_logits(1000, 9);
  const auto run = [&](uint64_t seed, uint64_t sequence) {
    Sampler sampler({1.0f, 0, 0.95f, seed}, sequence);
    std::vector<int32_t> picked;
    for (int i = 0; i < 20; ++i) picked.push_back(sampler.pick(logits));
    return picked;
  };
  CHECK(run(1, 0) == run(1, 0));
  CHECK(run(1, 0) != run(2, 0));
  CHECK(run(1, 0) != run(1, 1));
  CHECK(run(1, 2) != run(2, 1));
}

TEST_CASE("sampler: infinite logits and tiny temperatures are no trouble") {
  Sampler sampler({1e-30f, 0, 0.9f, 4}, 0);
  CHECK(sampler.pick(std::vector<float>{1, 2, 1.9999f}) == 1);
  Sampler warm({1.0f, 0, 1.0f, 4}, 0);
  for (int i = 0; i < 50; ++i) {
    CHECK(warm.pick(std::vector<float>{0, kInfinity, 5}) == 1);
    CHECK(warm.pick(std::vector<float>{-kInfinity, 0, -kInfinity}) == 1);
    CHECK(warm.pick(std::vector<float>{-kInfinity, -kInfinity}) < 2);
  }
}

TEST_CASE("sampler: refuses NaN and options out of range") {
  Sampler sampler({}, 0);
  CHECK(test::error_of([&] {
          sampler.pick(std::vector<float>{0, std::nanf("")});
        }) == "the logit of token 1 is NaN");
  const auto refusal = [](const SamplingOptions& options) {
    return test::error_of([&] { Sampler(options, 0); }, ErrorKind::usage);
  };
  CHECK(refusal({-1.0f}) == "temperature: is -1, expected a number from 0");
  CHECK(refusal({std::nanf("")}) == "temperature: is nan, expected a number from 0");
  CHECK(refusal({kInfinity}) == "temperature: is inf, expected a number from 0");
  CHECK(refusal({1.0f, -2}) == "top_k: is -2, expected an integer from 0");
  CHECK(refusal({1.0f, 0, 0.0f}) == "top_p: is 0, expected a number above 0, at most 1");
  CHECK(refusal({1.0f, 0, 1.5f}) == "top_p: is 1.5, expected a number above 0, at most 1");
}

}  // namespace
}  // namespace fp8kv
