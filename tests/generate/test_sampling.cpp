#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "core/numbers/sampling.h"
#include "generate/sampling.h"
#include "support/backends/cpu.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> logits(size);
  // Logits on a coarse grid, so that many are equal.
  for (float& logit : logits) logit = static_cast<float>(std::floor(rng.uniform() * 24)) / 4;
  return logits;
}

// The ids that may be drawn and their probabilities, found by sorting all logits.
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

// Draws one id from each row of logits, at its position.
std::vector<int32_t> draw(const std::vector<std::vector<float>>& rows,
                          const std::vector<SamplingOptions>& options,
                          const std::vector<int32_t>& positions) {
  const auto backend = make_cpu_backend(2);
  const auto n = static_cast<int64_t>(rows.size());
  std::vector<float> logits;
  for (const auto& row : rows) logits.insert(logits.end(), row.begin(), row.end());
  const auto width = static_cast<int64_t>(rows[0].size());
  const Tensor values = test::tensor_of(*backend, logits, Shape{n, width});
  const Tensor at = test::tensor_of(*backend, positions, Shape{n});
  SamplingRows sampling(*backend, n);
  sampling.upload(options);
  const Tensor ids = backend->allocate(DType::i32, Shape{n});
  backend->sample(values.view(), sampling.at(at.view()), ids.view());
  std::vector<int32_t> drawn(rows.size());
  backend->download(ids.view(), std::as_writable_bytes(std::span(drawn)));
  return drawn;
}

int32_t pick(const std::vector<float>& logits, const SamplingOptions& options = {},
             int32_t position = 0) {
  return draw({logits}, {options}, {position})[0];
}

// Draws `count` ids from the same row, at positions 0, 1, ...
std::vector<int32_t> draws(const std::vector<float>& logits, const SamplingOptions& options,
                           int count) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<std::vector<float>> rows(positions.size(), logits);
  return draw(rows, std::vector<SamplingOptions>(positions.size(), options), positions);
}

TEST_CASE("sampling: at temperature 0 the largest logit wins, the lowest id among equals") {
  CHECK(pick({1, 3, 2, 3}) == 1);
  CHECK(pick({-kInfinity, -kInfinity}) == 0);
  CHECK(pick({-0.0f, 0.0f}) == 0);
  CHECK(pick({5}) == 0);
}

TEST_CASE("sampling: draws as often as the distribution says, and nothing outside of it") {
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
    std::map<int32_t, int> counts;
    for (const int32_t id : draws(logits, options, kDraws)) ++counts[id];
    for (const auto& [id, count] : counts) CHECK(expected.contains(id));
    for (const auto& [id, share] : expected) {
      // Allows five standard deviations of a binomial distribution. The seed is fixed.
      const double deviation = std::sqrt(share * (1 - share) / kDraws);
      CHECK(std::abs(double(counts[id]) / kDraws - share) <= 5 * deviation + 1e-12);
    }
  }
}

TEST_CASE("sampling: of equal logits top_k and top_p keep the lower ids") {
  const std::vector<float> logits(50, 1.5f);
  for (const int32_t id : draws(logits, {1.0f, 3, 1.0f, 1}, 300)) CHECK(id < 3);
  // Three of fifty equal logits reach a top_p of 0.06.
  for (const int32_t id : draws(logits, {1.0f, 0, 0.06f, 1}, 300)) CHECK(id < 3);
}

TEST_CASE("sampling: the seed and the position decide what is drawn, not the row or the batch") {
  const std::vector<float> logits = random_logits(1000, 9);
  const SamplingOptions one{1.0f, 0, 0.95f, 1}, two{1.0f, 0, 0.95f, 2};
  CHECK(draws(logits, one, 20) == draws(logits, one, 20));
  CHECK(draws(logits, one, 20) != draws(logits, two, 20));
  const std::vector<int32_t> alone = draws(logits, one, 20);
  CHECK(draw({logits, logits, logits}, {two, one, {}}, {3, 7, 7})[1] == alone[7]);
  CHECK(sequence_seed(1, 2) != sequence_seed(2, 1));
  CHECK(sequence_seed(1, 0) != sequence_seed(1, 1));
}

TEST_CASE("sampling: infinite logits and tiny temperatures are no trouble") {
  CHECK(pick({1, 2, 1.9999f}, {1e-30f, 0, 0.9f, 4}) == 1);
  const SamplingOptions warm{1.0f, 0, 1.0f, 4};
  for (int i = 0; i < 50; ++i) {
    CHECK(pick({0, kInfinity, 5}, warm, i) == 1);
    CHECK(pick({-kInfinity, 0, -kInfinity}, warm, i) == 1);
    CHECK(pick({-kInfinity, -kInfinity}, warm, i) < 2);
  }
}

TEST_CASE("sampling: a row with a NaN says where the first is, and the others are drawn") {
  const float nan = std::nanf("");
  CHECK(draw({{0, 1, nan, nan}, {0, 1, 0, 0}}, {{}, {}}, {0, 0}) == std::vector<int32_t>{-3, 1});
}

TEST_CASE("sampling: weights are exp to the last of their bits, and keys are in order") {
  Rng rng(3);
  for (int i = 0; i < 20000; ++i) {
    const auto logit = static_cast<float>(-rng.uniform() * 30);
    const float temperature = 0.5f + static_cast<float>(rng.uniform());
    const auto exact =
        std::exp(static_cast<long double>(logit) / static_cast<long double>(temperature)) *
        static_cast<long double>(uint64_t{1} << kSamplingBits);
    // A weight is rounded down to an integer, with a relative error of at most 2^-46.
    const auto weight = static_cast<long double>(sampling_weight(logit, 0, temperature));
    CHECK(weight <= exact * (1 + 0x1p-46L));
    CHECK(weight >= exact * (1 - 0x1p-46L) - 1);
  }
  const float rising[] = {-kInfinity, -3e38f, -1.0f, -1e-40f, 0.0f, 1e-40f, 1.0f, kInfinity};
  for (size_t i = 0; i + 1 < std::size(rising); ++i) {
    CHECK(sampling_key(rising[i]) < sampling_key(rising[i + 1]));
    CHECK(sampling_logit(sampling_key(rising[i])) == rising[i]);
  }
  CHECK(sampling_key(-0.0f) == sampling_key(0.0f));
}

TEST_CASE("sampling: a random number becomes one below the total, as 128-bit arithmetic says") {
  Rng rng(5);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t random = rng.next(), total = rng.next() >> (1 + i % 60);
    __extension__ using Wide = unsigned __int128;
    CHECK(sampling_below(random, total) == static_cast<uint64_t>(Wide{random} * total >> 64));
  }
  CHECK(sampling_share(1e-30f, 5) == 1);
  CHECK(sampling_share(0.5f, 5) == 3);
}

TEST_CASE("sampling: refuses options out of range") {
  const auto refusal = [](const SamplingOptions& options) {
    return test::error_of([&] { check_sampling(options); });
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
