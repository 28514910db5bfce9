#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "data/halves.h"

namespace fp8kv {
namespace {

using Window = std::vector<int32_t>;

std::vector<Window> some_windows(int32_t count) {
  std::vector<Window> windows;
  for (int32_t i = 0; i < count; ++i) windows.push_back({1, i, i * i % 91});
  return windows;
}

std::set<Window> first_half_of(std::vector<Window> windows) {
  const size_t n = put_half_first(windows);
  return {windows.begin(), windows.begin() + static_cast<ptrdiff_t>(n)};
}

TEST_CASE("halves: a window is in the same half whatever else there is") {
  const std::vector<Window> all = some_windows(200);
  const std::set<Window> half = first_half_of(all);
  std::set<Window> of_parts;
  for (size_t part = 0; part < 3; ++part) {
    std::vector<Window> some;
    for (size_t i = part; i < all.size(); i += 3) some.push_back(all[i]);
    std::reverse(some.begin(), some.end());
    of_parts.merge(first_half_of(some));
  }
  CHECK(of_parts == half);
  // 200 throws of a coin: five standard deviations are 35.
  CHECK(half.size() > 65);
  CHECK(half.size() < 135);
}

TEST_CASE("halves: no window is lost, and each half keeps its order") {
  std::vector<Window> windows = some_windows(50);
  const auto n = static_cast<ptrdiff_t>(put_half_first(windows));
  CHECK(std::is_sorted(windows.begin(), windows.begin() + n));
  CHECK(std::is_sorted(windows.begin() + n, windows.end()));
  std::sort(windows.begin(), windows.end());
  std::vector<Window> all = some_windows(50);
  std::sort(all.begin(), all.end());
  CHECK(windows == all);
}

}  // namespace
}  // namespace fp8kv
