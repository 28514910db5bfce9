// The divergence of two caches' predictions, against the sum over the whole vocabulary in double.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "tasks/compare/text_divergence.h"

using namespace fp8kv;

namespace {

std::vector<double> softmax(const std::vector<float>& logits) {
  double sum = 0;
  std::vector<double> shares;
  for (const float each : logits) sum += std::exp(double{each});
  for (const float each : logits) shares.push_back(std::exp(double{each}) / sum);
  return shares;
}

double exact_divergence(const std::vector<float>& baseline, const std::vector<float>& own) {
  const std::vector<double> p = softmax(baseline), q = softmax(own);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] * std::log(p[i] / q[i]);
  return sum;
}

// `spread`: how much larger the likeliest logits are.
std::vector<float> random_logits(size_t n, float spread, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> logits;
  for (size_t i = 0; i < n; ++i) {
    logits.push_back(spread * static_cast<float>(rng.next() % 1000) / 1000.0f);
  }
  return logits;
}

std::vector<float> moved(std::vector<float> logits, uint64_t seed) {
  const std::vector<float> noise = random_logits(logits.size(), 0.5f, seed);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] += noise[i];
  return logits;
}

}  // namespace

TEST_CASE("text divergence: exact for a vocabulary that is kept whole") {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<float> baseline = random_logits(KeptPrediction::kLikeliest, 9, seed);
    const std::vector<float> own = moved(baseline, seed + 10);
    const double exact = exact_divergence(baseline, own);
    REQUIRE(exact > 1e-3);
    CHECK(std::abs(divergence(kept_prediction(0, baseline), own) - exact) < 1e-9 * exact);
  }
}

// Merging the rest loses at most its share times the range of log(p / q) in it, which is that of
// the noise: 0.5.
TEST_CASE("text divergence: a lower bound for a larger vocabulary, and close if few tokens count") {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<float> baseline = random_logits(2000, 100, seed);
    const std::vector<float> own = moved(baseline, seed + 10);
    const double exact = exact_divergence(baseline, own);
    const KeptPrediction kept = kept_prediction(0, baseline);
    double rest = 1;
    for (const double each : kept.log_probabilities) rest -= std::exp(each);
    REQUIRE(rest * 0.5 < exact / 10);
    const double found = divergence(kept, own);
    CHECK(found <= exact * (1 + 1e-9));
    CHECK(found >= exact - rest * 0.5);
  }
}

TEST_CASE("text divergence: equal predictions have none, and an impossible token an infinite one") {
  const std::vector<float> logits = random_logits(1000, 12, 5);
  CHECK(divergence(kept_prediction(0, logits), logits) == 0);
  std::vector<float> without = logits;
  const KeptPrediction kept = kept_prediction(0, logits);
  without[static_cast<size_t>(kept.ids[0])] = -INFINITY;
  CHECK(std::isinf(divergence(kept, without)));
}

TEST_CASE("text divergence: the sum ends with the first other token, and with the baseline") {
  const std::vector<float> a = random_logits(50, 5, 1), b = moved(a, 2), c = moved(a, 3);
  const std::vector<KeptPrediction> baseline = {kept_prediction(7, a), kept_prediction(8, a),
                                                kept_prediction(9, a)};
  DivergingText parts(baseline);
  parts.add(7, b);
  parts.add(4, c);  // draws another token, which still counts
  parts.add(9, b);
  CHECK(parts.sums().tokens == 2);
  CHECK(parts.sums().kld == divergence(baseline[0], b) + divergence(baseline[1], c));
  DivergingText same(baseline);
  for (const int32_t id : {7, 8, 9, 10}) same.add(id, b);
  CHECK(same.sums().tokens == 3);
}
