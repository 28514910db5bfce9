#include "kernels/ptx/operations/floats.h"

#include <cmath>
#include <limits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace fp8kv::ptx {
namespace {

struct Format {
  int mantissa_bits;
  int bias;
};
constexpr Format kF16{10, 15};
constexpr Format kE4m3{3, 7};
constexpr Format kE5m2{2, 15};

// The bits of a number x >= 0, without a sign. There is no upper limit: too large a number gives
// bits beyond the format's.
uint32_t nearest(float x, Format format) {
  const int least = 1 - format.bias;  // exponent of the least normal number
  int exponent = 0;
  std::frexp(x, &exponent);
  exponent = x == 0 || exponent - 1 < least ? least : exponent - 1;
  // Rounds in units of the last place, exact in double.
  const double units = std::nearbyint(std::ldexp(double{x}, format.mantissa_bits - exponent));
  return (static_cast<uint32_t>(exponent - least) << format.mantissa_bits) +
         static_cast<uint32_t>(units);
}

float number(uint32_t bits, Format format) {
  const int mantissa = static_cast<int>(bits & ((1u << format.mantissa_bits) - 1));
  const int exponent = static_cast<int>(bits >> format.mantissa_bits);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  const int scale = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  return std::ldexp(static_cast<float>(whole), scale);
}

uint8_t saturated(float x, Format format, uint32_t largest) {
  if (std::isnan(x)) return 0x7F;
  const float end = number(largest, format);
  const float size = std::fabs(x) > end ? end : std::fabs(x);
  return static_cast<uint8_t>(nearest(size, format) | (std::signbit(x) ? 0x80u : 0u));
}

// A sum rounded to double, and its rounding error.  Knuth, TAOCP 2, 4.2.2.
struct Sum {
  double rounded;
  double lost;
};
Sum sum_of(double a, double b) {
  const double rounded = a + b, part = rounded - a;
  return {rounded, (a - (rounded - part)) + (b - part)};
}

float rounded_down(const Sum& sum) {
  const auto nearest = static_cast<float>(sum.rounded);
  const bool above =
      double{nearest} > sum.rounded || (double{nearest} == sum.rounded && sum.lost < 0);
  return above ? std::nextafterf(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}

}  // namespace

uint16_t f16_bits(float x) {
  if (std::isnan(x)) return 0x7FFF;
#if defined(__F16C__)
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
#else
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  const float size = std::fabs(x);
  const uint32_t bits = size >= 65536.0f ? 0x7C00 : nearest(size, kF16);
  return static_cast<uint16_t>(bits | sign);
#endif
}

uint8_t e4m3_bits(float x) {
  return saturated(x, kE4m3, 0x7E);
}
uint8_t e5m2_bits(float x) {
  return saturated(x, kE5m2, 0x7B);
}

float e4m3_number(uint8_t bits) {
  const uint32_t size = bits & 0x7F;
  if (size == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  return bits & 0x80 ? -number(size, kE4m3) : number(size, kE4m3);
}

float e5m2_number(uint8_t bits) {
  return f16_number(static_cast<uint16_t>(bits << 8));
}

float sum_toward_zero(float a, float b) {
  const Sum sum = sum_of(a, b);
  if (!(std::fabs(sum.rounded) < std::numeric_limits<double>::infinity())) return a + b;
  if (sum.rounded >= 0) return std::signbit(sum.rounded) ? -0.0f : rounded_down(sum);
  return -rounded_down({-sum.rounded, -sum.lost});
}

float fused_down(float a, float b, float c) {
  const Sum sum = sum_of(double{a} * double{b}, c);
  if (!(std::fabs(sum.rounded) < std::numeric_limits<double>::infinity())) return std::fma(a, b, c);
  if (sum.rounded == 0) {
    const bool negative = std::signbit(a) != std::signbit(b);
    return negative || std::signbit(c) ? -0.0f : 0.0f;
  }
  return rounded_down(sum);
}

}  // namespace fp8kv::ptx
