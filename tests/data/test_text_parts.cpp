#include <algorithm>
#include <array>
#include <set>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "data/text_parts.h"

namespace fp8kv {
namespace {

using Window = std::vector<int32_t>;
using Sets = std::array<std::set<Window>, kTextParts>;

std::vector<Window> some_windows(int32_t count) {
  std::vector<Window> windows;
  for (int32_t i = 0; i < count; ++i) windows.push_back({1, i, i * i % 91});
  return windows;
}

Sets parts_of(std::vector<Window> windows) {
  const TextParts counts = put_parts_first(windows);
  Sets sets;
  for (size_t part = 0; part < kTextParts; ++part) {
    sets[part] = {windows.begin(), windows.begin() + static_cast<ptrdiff_t>(counts[part])};
  }
  return sets;
}

TEST_CASE("text parts: a window is in the same parts whatever else there is") {
  const std::vector<Window> all = some_windows(400);
  const Sets whole = parts_of(all);
  Sets joined;
  for (size_t part = 0; part < 3; ++part) {
    std::vector<Window> some;
    for (size_t i = part; i < all.size(); i += 3) some.push_back(all[i]);
    std::reverse(some.begin(), some.end());
    Sets of_some = parts_of(some);
    for (size_t i = 0; i < kTextParts; ++i) joined[i].merge(of_some[i]);
  }
  CHECK(joined == whole);
}

// 400 draws: five standard deviations are 33, 43 and 50.
TEST_CASE("text parts: they hold about an eighth, a quarter and half of many windows") {
  const Sets parts = parts_of(some_windows(400));
  const std::array<size_t, kTextParts> expected = {50, 100, 200}, apart = {33, 43, 50};
  for (size_t i = 0; i < kTextParts; ++i) {
    CAPTURE(i);
    CHECK(parts[i].size() + apart[i] > expected[i]);
    CHECK(parts[i].size() < expected[i] + apart[i]);
  }
}

TEST_CASE("text parts: the first hex digit of a window's SHA-256 says which") {
  const std::vector<Window> all = some_windows(100);
  const Sets parts = parts_of(all);
  for (const Window& window : all) {
    Sha256 digest;
    digest.add({reinterpret_cast<const char*>(window.data()), window.size() * sizeof(int32_t)});
    const int digit = std::stoi(digest.hex().substr(0, 1), nullptr, 16);
    CHECK(parts[0].contains(window) == (digit % 8 == 0));
    CHECK(parts[1].contains(window) == (digit % 4 == 0));
    CHECK(parts[2].contains(window) == (digit % 2 == 0));
  }
}

TEST_CASE("text parts: no window is lost, and each part keeps its order") {
  std::vector<Window> windows = some_windows(50);
  const TextParts counts = put_parts_first(windows);
  size_t from = 0;
  for (const size_t to : {counts[0], counts[1], counts[2], windows.size()}) {
    CHECK(std::is_sorted(windows.begin() + static_cast<ptrdiff_t>(from),
                         windows.begin() + static_cast<ptrdiff_t>(to)));
    from = to;
  }
  std::sort(windows.begin(), windows.end());
  std::vector<Window> all = some_windows(50);
  std::sort(all.begin(), all.end());
  CHECK(windows == all);
}

}  // namespace
}  // namespace fp8kv
