#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/isa/cpu_isa.h"
#include "core/numbers/half.h"
#include "quantize/encode_rows.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

// The finite magnitudes of E4M3FN in the order of their codes, by the definition of the format.
std::vector<double> magnitudes() {
  std::vector<double> values;
  for (int code = 0; code < 0x7F; ++code) {
    const int exponent = code >> 3, mantissa = code & 7;
    values.push_back(exponent == 0 ? std::ldexp(mantissa, -9)
                                   : std::ldexp(8 + mantissa, exponent - 10));
  }
  return values;
}

// The nearest number with `bits` bits of mantissa, ties to even. `least` is the exponent of the
// smallest step.
double rounded(double value, int bits, int least) {
  if (value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int step = std::max(exponent - bits, least);
  return std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
}

double rounded_to(DType dtype, double value) {
  if (dtype == DType::bf16) return rounded(value, 8, -133);
  return dtype == DType::f16 ? rounded(value, 11, -24) : rounded(value, 24, -149);
}

// Finds the code by searching all values.
uint8_t code_of(double value) {
  static const std::vector<double> kValues = magnitudes();
  const double magnitude = std::min(std::fabs(value), 448.0);
  const auto above = std::lower_bound(kValues.begin(), kValues.end(), magnitude);
  auto code = static_cast<size_t>(above - kValues.begin());
  if (code > 0) {
    const double up = kValues[code] - magnitude, down = magnitude - kValues[code - 1];
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<uint8_t>(code | (std::signbit(value) ? 0x80u : 0u));
}

// All finite values of a 16-bit type, as stored bits.
std::vector<uint16_t> finite_values(DType dtype) {
  std::vector<uint16_t> all;
  const uint32_t infinity = dtype == DType::bf16 ? 0x7F80u : 0x7C00u;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7FFFu) < infinity) all.push_back(static_cast<uint16_t>(bits));
  }
  return all;
}

double value_of(DType dtype, uint16_t bits) {
  return dtype == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits);
}

}  // namespace

TEST_CASE("encode_rows: every value of 16 bits, by scales of all sizes, is the nearest code") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::vector<uint16_t> values = finite_values(dtype);
    const auto columns = static_cast<int64_t>(values.size());
    std::vector<float> scales = {1.0f, 0.0078125f, 0.000976562f, 0.5f, 1.0078125f, 3.0f, 0.02f};
    for (int power = -20; power < 8; power += 3) scales.push_back(std::ldexp(1.1f, power));
    for (const CpuIsa isa : test::available_isas()) {
      RowEncoder encoder(cpu_kernels(isa), dtype, columns, columns);
      std::vector<std::byte> codes(values.size());
      for (const float wanted : scales) {
        const auto scale = static_cast<float>(rounded_to(dtype, wanted));
        CAPTURE(scale);
        CAPTURE(std::string(cpu_isa_name(isa)));
        encoder.encode(reinterpret_cast<const std::byte*>(values.data()), 1, std::span(&scale, 1),
                       codes.data());
        int64_t wrong = 0;
        for (size_t i = 0; i < values.size(); ++i) {
          // The double quotient is exact enough to round it once more.
          const double quotient = value_of(dtype, values[i]) / double{scale};
          const double most = dtype == DType::f16 ? 65504.0 : 3.3895313892515355e38;
          const double stored = std::fabs(quotient) > most ? std::copysign(1e30, quotient)
                                                           : rounded_to(dtype, quotient);
          wrong += codes[i] == std::byte{code_of(stored)} ? 0 : 1;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("encode_rows: a scale is amax / 448 in the dtype of the weights, and never 0") {
  for (const uint16_t bits : finite_values(DType::bf16)) {
    const double amax = std::fabs(value_of(DType::bf16, bits));
    const double expected = rounded_to(DType::bf16, amax / 448);
    const float scale = weight_scale(static_cast<float>(amax), DType::bf16);
    if (scale != (expected == 0 ? 0.0078125 : expected)) FAIL("amax ", amax, " gives ", scale);
  }
  for (const uint16_t bits : finite_values(DType::f16)) {
    const double amax = std::fabs(value_of(DType::f16, bits));
    const double expected = rounded_to(DType::f16, amax / 448);
    const float scale = weight_scale(static_cast<float>(amax), DType::f16);
    if (scale != (expected == 0 ? 0.0009765625 : expected)) FAIL("amax ", amax, " gives ", scale);
  }
  CHECK(weight_scale(448.0f, DType::f32) == 1.0f);
  CHECK(weight_scale(1.0f, DType::f32) == 1.0f / 448);
  CHECK(weight_scale(0.0f, DType::f32) == std::numeric_limits<float>::epsilon());
}

TEST_CASE(
    "encode_rows: each block of columns has its own maximum and scale, the last one shorter") {
  const std::vector<float> rows = {1,  -2, 3,  0.5f,  7,  //
                                   -4, 1,  -8, 0.25f, -6};
  for (const CpuIsa isa : test::available_isas()) {
    RowEncoder encoder(cpu_kernels(isa), DType::f32, 5, 2);
    REQUIRE(encoder.blocks() == 3);
    std::vector<uint32_t> amax(3, 0);
    encoder.raise(reinterpret_cast<const std::byte*>(rows.data()), 2, amax);
    CHECK(float_from_bits(amax[0]) == 4);
    CHECK(float_from_bits(amax[1]) == 8);
    CHECK(float_from_bits(amax[2]) == 7);
    const std::vector<float> scales = {1, 0.5f, 0.25f};
    std::vector<std::byte> codes(10);
    encoder.encode(reinterpret_cast<const std::byte*>(rows.data()), 2, scales, codes.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(codes[i] == std::byte{code_of(double{rows[i]} / double{scales[i % 5 / 2]})});
    }
  }
}

TEST_CASE("encode_rows: what is not finite is above all maxima, and is found") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const CpuIsa isa : test::available_isas()) {
    for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
      for (size_t at = 0; at < 300; at += 23) {
        std::vector<float> rows(300, 1.0f);
        rows[at] = bad;
        RowEncoder encoder(cpu_kernels(isa), DType::f32, 150, 150);
        std::vector<uint32_t> amax(1, 0);
        const auto* bytes = reinterpret_cast<const std::byte*>(rows.data());
        encoder.raise(bytes, 2, amax);
        CHECK(amax[0] >= 0x7F800000u);
        CHECK(encoder.find_not_finite(bytes, 2) == static_cast<int64_t>(at));
      }
    }
  }
}

}  // namespace fp8kv
