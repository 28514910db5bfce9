// Simulations of how often the sequential test errs.
#include <string>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "support/expect_error.h"
#include "tasks/compare/recovery_test.h"

using namespace fp8kv;

namespace {

struct Shares {
  int accepted = 0;
  int refused = 0;
};

// Tests `runs` caches against a baseline with 60 % of the items right. Each cache wins 3 % of the
// items, like FP8 caches of small models, and loses `loss` more than it wins.
Shares simulate(int runs, double bound, double loss, int items, uint64_t seed) {
  constexpr double kWins = 0.03;
  Rng rng(seed);
  Shares shares;
  for (int run = 0; run < runs; ++run) {
    RecoveryTest test(bound);
    for (int i = 0; i < items && test.decision() == Decision::open; ++i) {
      const double u = rng.uniform();
      const bool win = u < kWins;
      const bool lost = u >= kWins && u < 2 * kWins + loss;
      const bool both = u >= 2 * kWins + loss && u < 0.60 + kWins;
      test.add(win || both, lost || both);
    }
    if (test.decision() == Decision::accepted) ++shares.accepted;
    if (test.decision() == Decision::refused) ++shares.refused;
  }
  return shares;
}

}  // namespace

// docs/accuracy.md gives these numbers.
TEST_CASE("recovery test: of equal caches at most 5 % are refused, of those 5 points worse 95 %") {
  constexpr int kRuns = 300, kItems = 1500;
  CHECK(simulate(kRuns, 0.99, 0, kItems, 1).refused <= kRuns * 5 / 100);
  const Shares worse = simulate(kRuns, 0.99, 0.05, kItems, 2);
  CHECK(worse.refused >= kRuns * 95 / 100);
  CHECK(worse.accepted <= kRuns * 5 / 100);
}

TEST_CASE("recovery test: at the bound itself, neither answer is given more often than 5 %") {
  // The recovery is 0.95: the baseline has 60 % right, and a cache 3 points less.
  const Shares shares = simulate(200, 0.95, 0.03, 2000, 3);
  CHECK(shares.accepted <= 10);
  CHECK(shares.refused <= 10);
}

TEST_CASE("recovery test: equal caches are accepted at a bound that leaves room") {
  CHECK(simulate(200, 0.95, 0, 1500, 4).accepted >= 190);
}

TEST_CASE("recovery test: once decided nothing changes, and the items to decide are about right") {
  RecoveryTest test(0.95);
  PairedCounts counts;
  for (int i = 0; i < 1000; ++i) test.add(true, true);
  counts.both = 1000;
  REQUIRE(test.decision() == Decision::accepted);
  const uint64_t items = test.items();
  CHECK(test.items_to_decide(counts) >= items);
  CHECK(test.items_to_decide(counts) < 2 * items);
  for (int i = 0; i < 1000; ++i) test.add(false, true);
  CHECK(test.decision() == Decision::accepted);
  CHECK(test.items() == items);
}

TEST_CASE("recovery test: a bound is a share or a percentage") {
  CHECK(parse_acceptance("recovery >= 99%").bound == doctest::Approx(0.99));
  CHECK(parse_acceptance("recovery>=0.95").bound == 0.95);
  for (const char* bad : {"recovery > 99%", "acc >= 0.5", "recovery >= 0", "recovery >= 101%",
                          "recovery >= 1x", "recovery >=", ""}) {
    CAPTURE(std::string(bad));
    CHECK(test::error_of([&] { parse_acceptance(bad); }, ErrorKind::usage) ==
          cat("is ", quote(bad), ", expected recovery >= a share above 0 and up to 100%"));
  }
}
