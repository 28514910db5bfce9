#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "eval/standard_errors.h"

namespace fp8kv {
namespace {

std::vector<int64_t> depths_of(const std::vector<int64_t>& windows) {
  std::vector<int64_t> depths;
  for (const int64_t length : windows) {
    for (int64_t i = 1; i <= length; ++i) depths.push_back(i);
  }
  return depths;
}

using Parts = std::vector<size_t>;

TEST_CASE("standard errors: a part is a window, or a share of one where windows are few") {
  const std::vector<int64_t> many(20, 2);
  const Parts of_windows = error_parts(depths_of(many));
  CHECK(of_windows[0] == 0);
  CHECK(of_windows[1] == 0);
  CHECK(of_windows[2] == 1);
  CHECK(of_windows.back() == 19);
  CHECK(error_parts(depths_of({32})).back() == 15);
  // Six windows: three parts each, except one part for the window with a single prediction.
  CHECK(error_parts(depths_of({3, 4, 1, 3, 3, 3})) ==
        Parts{0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(error_parts(std::vector<int64_t>{5}) == Parts{0});
}

TEST_CASE("standard errors: of equal parts it is that of their means") {
  // Means 1, 2, 3 and 6: standard deviation sqrt(14 / 3), over sqrt(4).
  const std::vector<double> sums = {10, 20, 30, 60}, counts = {10, 10, 10, 10};
  const MeanAndError found = mean_over_parts(sums, counts);
  CHECK(found.mean == doctest::Approx(3));
  CHECK(found.error == doctest::Approx(std::sqrt(14.0 / 3) / 2));
  CHECK_FALSE(MeanAndError{3, 1.6}.is_clear());
  CHECK(MeanAndError{-3, 1.4}.is_clear());
  CHECK_FALSE(MeanAndError{std::nan(""), 0}.is_clear());
}

// Tokens of a window share half of their deviation. Errors computed over tokens would be too small.
TEST_CASE("standard errors: two of them hold the true mean in about 19 of 20 texts") {
  Rng rng(40);
  const auto normal = [&] {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    return radius * std::cos(6.283185307179586 * rng.uniform());
  };
  constexpr int kTexts = 2000, kWindows = 16, kTokens = 20;
  int held = 0;
  for (int text = 0; text < kTexts; ++text) {
    std::vector<double> sums, counts(kWindows, kTokens);
    for (int window = 0; window < kWindows; ++window) {
      const double shared = normal();
      double sum = 0;
      for (int token = 0; token < kTokens; ++token) sum += 5 + shared + normal();
      sums.push_back(sum);
    }
    const MeanAndError found = mean_over_parts(sums, counts);
    held += std::abs(found.mean - 5) <= 2 * found.error;
  }
  // Student's t with 15 degrees of freedom gives 93.6 %. The share over 2,000 texts varies by 0.55
  // %.
  const double share = static_cast<double>(held) / kTexts;
  CHECK(share > 0.936 - 4 * 0.0055);
  CHECK(share < 0.936 + 4 * 0.0055);
}

}  // namespace
}  // namespace fp8kv
