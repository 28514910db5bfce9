#include <algorithm>
#include <cfloat>
#include <cmath>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/fp8.h"
#include "eval/cache_errors.h"

using namespace fp8kv;

namespace {

// A format by its definition: all its magnitudes in order, and the limit where rounding overflows.
struct Format {
  DType dtype;
  int mantissa_bits;
  int bias;
  double max;
  double first_overflow;   // the smallest quotient that rounds past max,
  bool overflow_included;  // if included; else the largest that does not

  double min_normal() const { return std::ldexp(1.0, 1 - bias); }
  std::vector<double> magnitudes() const {
    std::vector<double> all = {0};
    const double step = std::ldexp(min_normal(), -mantissa_bits);
    for (int i = 1; i < 1 << mantissa_bits; ++i) all.push_back(i * step);
    for (double power = min_normal(); power <= max; power *= 2) {
      for (int i = 0; i < 1 << mantissa_bits; ++i) {
        const double value = power * (1 + std::ldexp(i, -mantissa_bits));
        if (value <= max) all.push_back(value);
      }
    }
    return all;
  }
};

const Format kFormats[] = {
    {DType::f8_e4m3, 3, 7, 448, 464, false},
    {DType::f8_e4m3fnuz, 3, 8, 240, 248, true},
    {DType::f8_e5m2, 2, 15, 57344, 61440, true},
    {DType::f8_e5m2fnuz, 2, 16, 57344, 61440, true},
};

// The index of the nearest magnitude. Of two equally near ones, returns the even index.
size_t nearest_magnitude(const std::vector<double>& all, double x) {
  const auto above = std::lower_bound(all.begin(), all.end(), x);
  if (above == all.end()) return all.size() - 1;
  const auto high = static_cast<size_t>(above - all.begin());
  if (high == 0) return 0;
  const double up = *above - x, down = x - all[high - 1];
  if (up != down) return up < down ? high : high - 1;
  return high % 2 == 0 ? high : high - 1;
}

std::vector<float> some_values(double spread) {
  Rng rng(5);
  std::vector<float> values = {0.0f, -0.0f, 1.0f, -1.0f};
  for (int i = 0; i < 4000; ++i) {
    const double exponent = (rng.uniform() - 0.5) * spread;
    values.push_back(static_cast<float>((rng.uniform() - 0.5) * std::exp2(exponent)));
  }
  return values;
}

// Adds what rounding costs, by a search of all the format's values.
void add_by_search(const Format& format, float scale, std::span<const float> values,
                   ErrorSums& sums) {
  const std::vector<double> all = format.magnitudes();
  for (const float x : values) {
    const double quotient = std::abs(double{x / scale});  // runtimes divide in f32
    const double stored = all[nearest_magnitude(all, quotient)];
    const double error = stored * scale - std::abs(double{x});
    sums.squared_error += error * error;
    sums.squared += double{x} * double{x};
    sums.saturated += std::abs(double{x}) > format.max * scale ? 1 : 0;
    sums.nonfinite_unclamped +=
        quotient > format.first_overflow ||
                (format.overflow_included && quotient == format.first_overflow)
            ? 1
            : 0;
    sums.subnormal += stored > 0 && stored < format.min_normal() ? 1 : 0;
    sums.zero += stored == 0 && x != 0 ? 1 : 0;
  }
}

KvRow row_of(DType elements, size_t dim) {
  return {kv_format(elements), static_cast<int32_t>(dim), 0};
}

}  // namespace

TEST_CASE("cache errors: a latent in blocks has those of each by its own amax / 448") {
  Rng rng(3);
  std::vector<float> latent;
  for (int i = 0; i < 384; ++i) {
    latent.push_back(static_cast<float>(rng.uniform() - 0.5) * (i < 128 ? 1e3f : 1e-3f));
  }
  std::fill_n(latent.begin() + 256, 128, 0.0f);
  ErrorSums expected, found;
  for (size_t first = 0; first < 384; first += 128) {
    const std::span<const float> block = std::span(latent).subspan(first, 128);
    float amax = 0;
    for (const float x : block) amax = std::max(amax, std::abs(x));
    add_by_search(kFormats[0], std::max(amax / 448, FLT_MIN), block, expected);
  }
  add_block_errors(latent, found);
  CHECK(found.values == 384);
  // The product code * scale is rounded to f32 once more.
  CHECK(found.squared_error == doctest::Approx(expected.squared_error).epsilon(1e-6));
  CHECK(found.squared == doctest::Approx(expected.squared).epsilon(1e-14));
  CHECK(found.saturated == 0);
  CHECK(found.relative_error() < 0.04);
  CHECK(found.relative_error() > 0.01);
}

TEST_CASE("cache errors: sums and counts equal a search of all the format's values") {
  for (const Format& format : kFormats) {
    for (const float scale : {1.0f, 0.0137f, 2.5f}) {
      const std::vector<float> values = some_values(60);
      ErrorSums expected;
      add_by_search(format, scale, values, expected);
      ErrorSums actual;
      add_errors(row_of(format.dtype, values.size()), scale, values, actual);
      INFO(dtype_name(format.dtype) << " at " << scale);
      // The product code * scale is rounded to f32 once more.
      CHECK(actual.squared_error == doctest::Approx(expected.squared_error).epsilon(1e-6));
      CHECK(actual.squared == doctest::Approx(expected.squared).epsilon(1e-14));
      CHECK(actual.values == values.size());
      CHECK(actual.saturated == expected.saturated);
      CHECK(actual.subnormal == expected.subnormal);
      CHECK(actual.zero == expected.zero);
      CHECK(actual.nonfinite_unclamped == expected.nonfinite_unclamped);
      CHECK(actual.saturated > 100);
      CHECK(actual.subnormal > 100);
      CHECK(actual.zero > 100);
    }
  }
}

TEST_CASE("cache errors: ends of the range are told apart as formats do") {
  struct Case {
    DType dtype;
    float x;
    bool saturated, nonfinite;
  };
  const Case cases[] = {
      {DType::f8_e4m3, 448, false, false},     {DType::f8_e4m3, 449, true, false},
      {DType::f8_e4m3, -464, true, false},     {DType::f8_e4m3, 465, true, true},
      {DType::f8_e4m3fnuz, 240, false, false}, {DType::f8_e4m3fnuz, 247, true, false},
      {DType::f8_e4m3fnuz, -248, true, true},  {DType::f8_e5m2, 61439, true, false},
      {DType::f8_e5m2, 61440, true, true},     {DType::f16, 65504, false, false},
      {DType::f16, 70000, true, true},         {DType::bf16, 70000, false, false},
      {DType::f32, 1e38f, false, false},
  };
  for (const Case& each : cases) {
    ErrorSums sums;
    add_errors(row_of(each.dtype, 1), 1, std::span(&each.x, 1), sums);
    INFO(dtype_name(each.dtype) << " of " << each.x);
    CHECK(sums.saturated == (each.saturated ? 1 : 0));
    CHECK(sums.nonfinite_unclamped == (each.nonfinite ? 1 : 0));
  }
}

TEST_CASE("cache errors: a scale made from amax never saturates amax, whatever it is") {
  Rng rng(9);
  for (int i = 0; i < 20000; ++i) {
    const auto amax = static_cast<float>(std::exp2((rng.uniform() - 0.5) * 40));
    for (const KvFormat format : {KvFormat::e4m3fn, KvFormat::e4m3fnuz}) {
      ErrorSums sums;
      add_errors({format, 1, 0}, scale_from_amax(amax, format, 1), std::span(&amax, 1), sums);
      // FNUZ codes reach 240, while the scale maps amax to 224.
      REQUIRE(sums.saturated == 0);
      REQUIRE(sums.nonfinite_unclamped == 0);
    }
  }
}

TEST_CASE("cache errors: heads add up, and a tensor of zeros has no error") {
  ErrorSums a, b, none;
  a.squared = 9;
  a.squared_error = 1;
  a.values = 3;
  b.squared = 7;
  b.squared_error = 3;
  b.values = 5;
  b.saturated = 2;
  const CacheErrors errors = cache_errors({a, b, none});
  CHECK(errors.relative_error == 0.5);
  CHECK(errors.head_errors[0] == 1.0 / 3);
  CHECK(errors.head_errors[2] == 0);
  CHECK(errors.values == 8);
  CHECK(errors.saturated == 2);
}

TEST_CASE("reads_back_equal: FNUZ with twice the scale is E4M3FN, until 464") {
  const std::vector<float> inside = {0.3f, -17.0f, 463.0f, 1e-4f, 0.0f};
  const std::vector<float> outside = {0.3f, 465.0f};
  CHECK(reads_back_equal(DType::f8_e4m3, 1, DType::f8_e4m3fnuz, 2, inside));
  CHECK(!reads_back_equal(DType::f8_e4m3, 1, DType::f8_e4m3fnuz, 2, outside));
  CHECK(!reads_back_equal(DType::f8_e4m3, 1, DType::f8_e4m3fnuz, 1, inside));
  CHECK(!reads_back_equal(DType::f8_e4m3, 1, DType::f8_e5m2, 1, inside));
}

TEST_CASE("reads_back_equal: float caches are equal where the values fit both") {
  const std::vector<float> halves = {0.5f, -3.0f, 1024.0f};
  const std::vector<float> fine = {0.5f, 1.0f + 0x1p-10f};
  CHECK(reads_back_equal(DType::f16, 1, DType::bf16, 1, halves));
  CHECK(!reads_back_equal(DType::f16, 1, DType::bf16, 1, fine));
  CHECK(reads_back_equal(DType::f16, 1, DType::f32, 1, fine));
  // Scales whose ratio is not a power of two round differently in attention, even for equal values.
  CHECK(!reads_back_equal(DType::f16, 1, DType::f8_e4m3, 0.3f, std::vector<float>{0.0f}));
}
