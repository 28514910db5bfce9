#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/octaves.h"

namespace fp8kv {
namespace {

OctaveCounts counted(const std::vector<float>& values) {
  std::vector<uint64_t> bins(kMagnitudeBins);
  for (const float x : values) ++bins[static_cast<size_t>(magnitude_bin(float_bits(std::fabs(x))))];
  return octaves_of(bins);
}

// Values of every size that FP16 and BF16 can represent, and zeros.
std::vector<float> spread(uint64_t seed, int count) {
  Rng rng(seed);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    const float size = std::ldexp(1.0f, static_cast<int>(rng.next() % 80) - 50);
    values.push_back(i % 11 == 0 ? 0.0f : size * static_cast<float>(rng.uniform() + 1));
  }
  return values;
}

TEST_CASE("octaves: each nonzero value counts where its exponent says") {
  const std::vector<float> values = spread(1, 4000);
  std::map<int, uint64_t> expected;
  uint64_t zeros = 0;
  for (const float x : values) {
    int exponent = 0;
    std::frexp(x, &exponent);  // x = m * 2^exponent, 0.5 <= m < 1
    if (x == 0 || exponent - 1 < -39) {
      ++zeros;
    } else {
      ++expected[std::min(exponent - 1, 23)];
    }
  }
  const OctaveCounts octaves = counted(values);
  CHECK(octaves.zeros == zeros);
  CHECK(octaves.first == expected.begin()->first);
  CHECK(octaves.nonzero() == values.size() - zeros);
  REQUIRE(octaves.counts.size() ==
          static_cast<size_t>(expected.rbegin()->first - octaves.first + 1));
  for (size_t i = 0; i < octaves.counts.size(); ++i) {
    CHECK(octaves.counts[i] == expected[octaves.first + static_cast<int>(i)]);
  }
}

TEST_CASE("octaves: a power of two begins its octave") {
  const OctaveCounts octaves = counted({1.0f, std::nextafterf(1.0f, 0.0f), -2.0f, 3.5f});
  CHECK(octaves == OctaveCounts{0, -1, {1, 1, 2}});
  CHECK(octaves.below(0) == 1);
  CHECK(octaves.below(1) == 2);
  CHECK(octaves.below(2) == 4);
  CHECK(octaves.below(-2000000000) == 0);
  CHECK(octaves.below(2000000000) == 4);
  CHECK(octave_of(1.0f) == 0);
  CHECK(octave_of(std::nextafterf(1.0f, 0.0f)) == -1);
  CHECK(octave_of(std::numeric_limits<float>::max()) == 23);
}

TEST_CASE("octaves: the median octave is that of the lower middle value") {
  CHECK(counted({0.0f, 0.0f, 0.0f, 5.0f}).median_octave() == 2);
  CHECK(counted({0.3f, 0.3f, 5.0f, 5.0f}).median_octave() == -2);
  CHECK(counted({0.3f, 5.0f, 5.0f}).median_octave() == 2);
  CHECK(counted({0.3f, 1.0f, 9.0f}).median_octave() == 0);
}

TEST_CASE("octaves: adding parts gives the counts of the whole, in any order") {
  const std::vector<float> all = spread(2, 999);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{500}, all.size()}) {
    const OctaveCounts a = counted({all.begin(), all.begin() + static_cast<ptrdiff_t>(cut)});
    const OctaveCounts b = counted({all.begin() + static_cast<ptrdiff_t>(cut), all.end()});
    OctaveCounts ab = a, ba = b;
    ab.add(b);
    ba.add(a);
    CHECK(ab == counted(all));
    CHECK(ba == counted(all));
  }
}

TEST_CASE("octaves: zeros alone have no octave") {
  CHECK(counted({0.0f, -0.0f, 1e-30f}) == OctaveCounts{3, 0, {}});
}

}  // namespace
}  // namespace fp8kv
