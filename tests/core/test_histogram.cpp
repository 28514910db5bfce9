#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "core/numbers/half.h"
#include "core/numbers/histogram.h"

namespace fp8kv {
namespace {

int bin_of(float magnitude) {
  return magnitude_bin(float_bits(magnitude));
}

TEST_CASE("histogram: every bin begins at its floor and ends before the next") {
  int wrong = 0;
  for (int bin = 1; bin < kMagnitudeBins; ++bin) {
    const float floor = magnitude_bin_floor(bin);
    if (bin_of(floor) != bin) ++wrong;
    if (bin_of(std::nextafterf(floor, 0.0f)) != bin - 1) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("histogram: a bin is at most 1.6 % wide") {
  double widest = 0;
  for (int bin = 0; bin + 1 < kMagnitudeBins; ++bin) {
    const double floor = double{magnitude_bin_floor(bin)};
    widest = std::fmax(widest, double{magnitude_bin_floor(bin + 1)} / floor - 1);
  }
  CHECK(widest <= 0.016);
  CHECK(widest >= 1.0 / 64);  // in the first bin of a binade; there are 64 bins per binade
}

TEST_CASE("histogram: bins rise with the magnitude over all finite floats") {
  int previous = 0, falls = 0;
  for (uint32_t bits = 0; bits < 0x7F800000u; bits += 1009) {
    const int bin = magnitude_bin(bits);
    if (bin < previous || bin >= kMagnitudeBins) ++falls;
    previous = bin;
  }
  CHECK(falls == 0);
  CHECK(previous == kMagnitudeBins - 1);
}

TEST_CASE("histogram: the range is 2^-40 to 2^24, and what lies outside falls into the end bins") {
  CHECK(magnitude_bin_floor(0) == 0x1p-40f);
  CHECK(bin_of(0.0f) == 0);
  CHECK(bin_of(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(bin_of(0x1p-40f) == 0);
  CHECK(bin_of(1.0f) == 40 * 64);
  CHECK(bin_of(std::nextafterf(0x1p24f, 0.0f)) == kMagnitudeBins - 1);
  CHECK(bin_of(0x1p24f) == kMagnitudeBins - 1);
  CHECK(bin_of(std::numeric_limits<float>::max()) == kMagnitudeBins - 1);
}

}  // namespace
}  // namespace fp8kv
