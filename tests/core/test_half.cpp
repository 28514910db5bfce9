// Compares f16 and bf16 with plain conversions in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/text.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

struct SlowHalf {
  int mantissa_bits;
  int bias;
};
constexpr SlowHalf kF16{10, 15};
constexpr SlowHalf kBf16{7, 127};

// The value of a 16-bit code in double. An exponent of all ones means infinity or NaN.
double slow_value(const SlowHalf& format, uint32_t code) {
  const double sign = code & 0x8000 ? -1.0 : 1.0;
  const int exponent_max = (1 << (15 - format.mantissa_bits)) - 1;
  const int exponent = static_cast<int>((code & 0x7FFF) >> format.mantissa_bits);
  const auto mantissa = static_cast<int>(code & ((1u << format.mantissa_bits) - 1));
  if (exponent == exponent_max) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                               : std::ldexp(1 + fraction, exponent - format.bias));
}

// Finds the nearest code by searching all magnitudes, ties to even. Infinity takes the place after
// the largest code, so values from the middle between the two overflow to it.
class SlowEncoder {
 public:
  explicit SlowEncoder(const SlowHalf& format) : format_(format) {
    const uint32_t infinity = ((1u << (15 - format.mantissa_bits)) - 1) << format.mantissa_bits;
    for (uint32_t code = 0; code < infinity; ++code) {
      magnitudes_.push_back(slow_value(format, code));
    }
    magnitudes_.push_back(2 * magnitudes_.back() - magnitudes_.rbegin()[1]);
  }

  // The nearest code; -1 stands for any NaN.
  int encode(float x) const {
    if (std::isnan(x)) return -1;
    const double wanted = std::fabs(static_cast<double>(x));
    const auto above = std::upper_bound(magnitudes_.begin(), magnitudes_.end(), wanted);
    auto code = static_cast<size_t>(above - magnitudes_.begin()) - 1;
    if (above != magnitudes_.end()) {
      const double middle = (magnitudes_[code] + *above) / 2;
      if (wanted > middle || (wanted == middle && code % 2 == 1)) ++code;
    }
    return static_cast<int>(code) | (std::signbit(x) ? 0x8000 : 0);
  }

 private:
  SlowHalf format_;
  std::vector<double> magnitudes_;
};

using Encode = uint16_t (*)(float);
using Decode = float (*)(uint16_t);

std::string difference(float x, Encode encode, const SlowEncoder& slow, const SlowHalf& format) {
  const uint16_t code = encode(x);
  const int expected = slow.encode(x);
  if (expected >= 0 ? code == expected : std::isnan(slow_value(format, code))) return "";
  return cat("bits ", float_bits(x), " encode to ", code, ", expected ", expected);
}

void check_all_codes(const SlowHalf& format, Encode encode, Decode decode) {
  uint32_t wrong_values = 0, wrong_round_trips = 0;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const double expected = slow_value(format, code);
    const float value = decode(static_cast<uint16_t>(code));
    const bool same = std::isnan(expected) ? std::isnan(value)
                                           : static_cast<double>(value) == expected &&
                                                 std::signbit(value) == std::signbit(expected);
    if (!same) ++wrong_values;
    const uint16_t back = encode(value);
    if (std::isnan(expected) ? !std::isnan(slow_value(format, back)) : back != code) {
      ++wrong_round_trips;
    }
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_round_trips == 0);
}

// Checks every value, every middle between neighbours, and the floats next to them.
void check_all_boundaries(const SlowHalf& format, Encode encode) {
  const SlowEncoder slow(format);
  const uint32_t infinity = ((1u << (15 - format.mantissa_bits)) - 1) << format.mantissa_bits;
  std::string first;
  for (uint32_t code = 0; code + 1 < infinity && first.empty(); ++code) {
    const double low = slow_value(format, code), high = slow_value(format, code + 1);
    for (const double boundary : {low, (low + high) / 2}) {
      const auto at = static_cast<float>(boundary);
      for (const float x : {at, std::nextafterf(at, 0.0f), std::nextafterf(at, INFINITY)}) {
        if (first.empty()) first = difference(x, encode, slow, format);
        if (first.empty()) first = difference(-x, encode, slow, format);
      }
    }
  }
  CHECK(first == "");
}

void check_random(const SlowHalf& format, Encode encode) {
  const SlowEncoder slow(format);
  Rng rng(2);
  std::string first;
  for (int i = 0; i < 1'000'000 && first.empty(); ++i) {
    first = difference(float_from_bits(static_cast<uint32_t>(rng.next())), encode, slow, format);
  }
  CHECK(first == "");
}

TEST_CASE("half: every f16 code decodes exactly and comes back") {
  check_all_codes(kF16, f16_from_float, f16_to_float);
}

TEST_CASE("half: every bf16 code decodes exactly and comes back") {
  check_all_codes(kBf16, bf16_from_float, bf16_to_float);
}

TEST_CASE("half: f16 rounds to nearest, ties to even, at every boundary") {
  check_all_boundaries(kF16, f16_from_float);
  check_random(kF16, f16_from_float);
}

TEST_CASE("half: bf16 rounds to nearest, ties to even, at every boundary") {
  check_all_boundaries(kBf16, bf16_from_float);
  check_random(kBf16, bf16_from_float);
}

TEST_CASE("half: what is past the largest value becomes infinity from the middle on") {
  CHECK(f16_from_float(65504.0f) == 0x7BFF);
  CHECK(f16_from_float(std::nextafterf(65520.0f, 0.0f)) == 0x7BFF);
  CHECK(f16_from_float(65520.0f) == 0x7C00);
  CHECK(f16_from_float(-65520.0f) == 0xFC00);
  CHECK(bf16_from_float(std::numeric_limits<float>::max()) == 0x7F80);
  CHECK(bf16_from_float(-std::numeric_limits<float>::infinity()) == 0xFF80);
}

TEST_CASE("half: a NaN whose payload lies in the dropped bits stays a NaN") {
  const float narrow = float_from_bits(0x7F800001u);
  CHECK(std::isnan(f16_to_float(f16_from_float(narrow))));
  CHECK(std::isnan(bf16_to_float(bf16_from_float(narrow))));
  CHECK((f16_from_float(-narrow) & 0x8000) != 0);
  CHECK((bf16_from_float(-narrow) & 0x8000) != 0);
}

}  // namespace
}  // namespace fp8kv
