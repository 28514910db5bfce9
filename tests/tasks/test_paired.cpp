#include <cmath>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "tasks/compare/paired.h"

using namespace fp8kv;

TEST_CASE("paired: McNemar's exact p is that of scipy.stats.binomtest") {
  CHECK(mcnemar_p(0, 0) == doctest::Approx(1));
  CHECK(mcnemar_p(5, 5) == doctest::Approx(1));
  CHECK(mcnemar_p(2, 8) == doctest::Approx(0.109375));
  CHECK(mcnemar_p(0, 6) == doctest::Approx(0.03125));
  CHECK(mcnemar_p(30, 12) == doctest::Approx(mcnemar_p(12, 30)));
}

TEST_CASE("paired: the error of a share is the standard deviation over the root of n") {
  CHECK(share_error(3, 4) == doctest::Approx(0.25));
  CHECK(share_error(0, 10) == 0);
  CHECK(share_error(1, 1) == 0);
}

TEST_CASE("paired: without a difference recovery is 1, and its interval is not empty") {
  const Recovery recovery = recovery_of({.both = 60, .wins = 0, .losses = 0, .none = 40});
  CHECK(recovery.value == 1);
  CHECK(recovery.low > 0.9);
  CHECK(recovery.low < 1);
  CHECK(recovery.high > 1);
}

// Simulates 2,000 runs of 200 items. Both caches have 55 % of the items right, this cache alone
// 5 % and the baseline alone 10 %. So the true recovery is 60 / 65. The standard error of 95 % over
// 2,000 runs is 0.5 %.
TEST_CASE("paired: the interval of recovery holds the true one in 95 % of runs") {
  Rng rng(11);
  int held = 0;
  for (int run = 0; run < 2000; ++run) {
    PairedCounts counts;
    for (int i = 0; i < 200; ++i) {
      const double u = rng.uniform();
      const bool right = u < 0.60;
      const bool baseline_right = u < 0.55 || (u >= 0.60 && u < 0.70);
      counts.add(right, baseline_right);
    }
    const Recovery recovery = recovery_of(counts);
    if (recovery.low <= 60.0 / 65 && 60.0 / 65 <= recovery.high) ++held;
  }
  CHECK(held >= 1870);
  CHECK(held <= 1940);
}
