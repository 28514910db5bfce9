// The sequential test, compared with games worked out by hand and with seeded simulations.
#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "attest/evidence.h"
#include "base/text.h"

namespace fp8kv {
namespace {

using Numbers = std::vector<double>;

// Windows from a server that computes with hypothesis `truth`; -1: with none of the hypotheses.
class SimulatedServer {
 public:
  SimulatedServer(size_t n_hypotheses, int truth, double noise, unsigned seed)
      : n_(n_hypotheses), truth_(truth), noise_(noise), random_(seed) {}

  // The noise has heavy tails, a size per window, and a bias that all tokens of a window share.
  EvidenceWindow window() {
    constexpr size_t kLength = 32;
    EvidenceWindow made;
    made.predicted.assign(n_, Numbers(kLength));
    made.server.resize(kLength);
    const double size = noise_ * std::exp(0.5 * normal_(random_));
    const double bias = 0.5 * size * normal_(random_);
    for (size_t i = 0; i < kLength; ++i) {
      const double scale = std::exp(normal_(random_));
      const double base = -3 * scale;
      for (size_t h = 0; h < n_; ++h) {
        made.predicted[h][i] = base + (h == 0 ? 0 : 0.2 * scale * normal_(random_));
      }
      const double own = 0.2 * scale * normal_(random_);
      const double mean = truth_ < 0 ? base + own : made.predicted[static_cast<size_t>(truth_)][i];
      const double tail = normal_(random_) / std::max(0.3, std::abs(normal_(random_)));
      made.server[i] = mean + scale * (size * tail + bias);
    }
    return made;
  }

 private:
  size_t n_;
  int truth_;
  double noise_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

}  // namespace

TEST_CASE("attest evidence: a window that lies on one prediction doubles the boldest bet nearly") {
  Evidence evidence(2, 2, 0.01);
  CHECK(evidence.threshold() == doctest::Approx(std::log(200.0)));
  evidence.add({{-1.0, -2.0}, {{-1.5, -2.5}, {-1.0, -2.0}}});
  // x is 1, so this is the mean of 1 + 1 * (0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 0.95).
  CHECK(evidence.against(0) == doctest::Approx(std::log(1 + 2.665 / 7)));
  CHECK(evidence.against(1) == 0);
  CHECK(evidence.residual(0) == doctest::Approx(0.5));
  CHECK(evidence.residual(1) == doctest::Approx(0));
  CHECK(evidence.explained(1) == doctest::Approx(1));
  CHECK(evidence.departure(1) == doctest::Approx(1));
}

TEST_CASE("attest evidence: predictions that are the same are never told apart") {
  Evidence evidence(3, 3, 0.01);
  for (int i = 0; i < 40; ++i) evidence.add({{-1.0}, {{-2.0}, {-1.0}, {-1.0}}});
  CHECK(evidence.is_excluded(0));
  CHECK_FALSE(evidence.is_excluded(1));
  CHECK_FALSE(evidence.is_excluded(2));
  CHECK(evidence.same_predictions(1, 2));
  CHECK_FALSE(evidence.same_predictions(0, 1));
}

TEST_CASE(
    "attest evidence: hypotheses that come later end where they would have been from the start") {
  Evidence whole(4, 4, 0.01), later(2, 4, 0.01);
  std::vector<std::vector<Numbers>> rest(2);
  SimulatedServer server(4, 2, 0.05, 7);
  for (int i = 0; i < 6; ++i) {
    EvidenceWindow window = server.window();
    // Only the first hypotheses determine the weights.
    window.predicted[3] = window.predicted[2] = window.predicted[1];
    rest[0].push_back(window.predicted[2]);
    rest[1].push_back(window.predicted[3]);
    EvidenceWindow first = window;
    first.predicted.resize(2);
    whole.add(std::move(window));
    later.add(std::move(first));
  }
  later.extend(rest);
  for (size_t h = 0; h < 4; ++h) CHECK(later.against(h) == doctest::Approx(whole.against(h)));
}

TEST_CASE("attest evidence: the truth is excluded in at most 1 % of simulated servers") {
  constexpr int kServers = 400;
  constexpr size_t kHypotheses = 8;
  int wrong = 0, decided = 0;
  for (int s = 0; s < kServers; ++s) {
    const auto truth = static_cast<size_t>(s) % kHypotheses;
    SimulatedServer server(kHypotheses, static_cast<int>(truth), 0.1, static_cast<unsigned>(s));
    Evidence evidence(kHypotheses, 40, 0.01);
    size_t left = kHypotheses;
    for (int w = 0; w < 64 && left > 1; ++w) {
      evidence.add(server.window());
      left = 0;
      for (size_t h = 0; h < kHypotheses; ++h) left += evidence.is_excluded(h) ? 0 : 1;
    }
    wrong += evidence.is_excluded(truth) ? 1 : 0;
    decided += left == 1 && !evidence.is_excluded(truth) ? 1 : 0;
  }
  CHECK(wrong <= kServers / 100);
  CHECK(decided >= kServers * 95 / 100);
}

TEST_CASE("attest evidence: noise alone, as large as what is to be told apart, excludes no truth") {
  int wrong = 0;
  for (unsigned s = 0; s < 200; ++s) {
    SimulatedServer server(6, 3, 2.0, 1000 + s);
    Evidence evidence(6, 6, 0.01);
    for (int w = 0; w < 48; ++w) evidence.add(server.window());
    wrong += evidence.is_excluded(3) ? 1 : 0;
  }
  CHECK(wrong <= 2);
}

TEST_CASE("attest evidence: a server that computes with none of them is explained by none") {
  for (unsigned s = 0; s < 20; ++s) {
    SimulatedServer server(6, -1, 0.02, s);
    Evidence evidence(6, 6, 0.01);
    for (int w = 0; w < 16; ++w) evidence.add(server.window());
    for (size_t h = 1; h < 6; ++h) {
      CHECK(evidence.explained(h) < 0.1);
      CHECK(evidence.departure(h) > 0.6);
    }
  }
}

}  // namespace fp8kv
