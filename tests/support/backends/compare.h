// Comparison with a more exact result, element by element, within what rounding can explain.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include <doctest/doctest.h>

namespace fp8kv::test {

// Unit roundoff of f32: no rounding changes a normal value by more than this part of it.
inline constexpr double kUnitF32 = 0x1p-24;

// Checks |actual[i] - expected[i]| <= allowed[i] for every i, and reports the element that uses
// most of its tolerance. NaN is close to nothing.
inline void expect_close(std::span<const float> actual, std::span<const double> expected,
                         std::span<const double> allowed) {
  REQUIRE(actual.size() == expected.size());
  REQUIRE(actual.size() == allowed.size());
  double worst_share = 0;
  size_t worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    double share = error == 0 ? 0 : error / allowed[i];
    if (std::isnan(share)) share = INFINITY;
    if (share > worst_share) {
      worst_share = share;
      worst = i;
    }
  }
  if (worst_share <= 1) return;
  FAIL_CHECK("element " << worst << " of " << actual.size() << ": is " << actual[worst]
                        << ", expected " << expected[worst] << ", allowed +-" << allowed[worst]
                        << " (" << worst_share << " of the tolerance used)");
}

}  // namespace fp8kv::test
