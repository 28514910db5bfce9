#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_loops.h"

namespace fp8kv {

TEST_CASE("exp: is within 2 units in the last place wherever the result is a normal float") {
  double worst = 0;
  // Floats from -87 to 88.7, with both signs: every 97th, but fewer below 2^-33, where the result
  // is 1.
  constexpr uint32_t kTiny = 0x2F000000u;
  for (uint32_t bits = 0; bits < float_bits(88.7f); bits += bits < kTiny ? 0x3001 : 97) {
    for (const float x : {float_from_bits(bits), -float_from_bits(bits)}) {
      if (x < -87.0f) continue;
      const double expected = std::exp(double{x});
      const int exponent = std::ilogb(expected);
      const double error = std::abs(double{loops::exp(x)} - expected);
      worst = std::max(worst, std::ldexp(error, 23 - exponent));
    }
  }
  CHECK(worst < 2);
}

TEST_CASE("exp: is exact at 0 and goes to 0, infinity and NaN at the ends") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(loops::exp(0.0f) == 1.0f);
  CHECK(loops::exp(-0.0f) == 1.0f);
  CHECK(loops::exp(-104.0f) == 0.0f);
  CHECK(loops::exp(-kInfinity) == 0.0f);
  CHECK(loops::exp(88.73f) == kInfinity);
  CHECK(loops::exp(kInfinity) == kInfinity);
  CHECK(std::isnan(loops::exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("tanh: is within 4 units in the last place, and odd") {
  double worst = 0;
  for (uint32_t bits = 0x2F000000u; bits < 0x42000000u; bits += 97) {  // 2^-33 to 32
    const float x = float_from_bits(bits);
    const double expected = std::tanh(double{x});
    const double error = std::abs(double{loops::tanh(x)} - expected);
    worst = std::max(worst, std::ldexp(error, 23 - std::ilogb(expected)));
    if (loops::tanh(-x) != -loops::tanh(x)) FAIL("not odd at ", x);
  }
  CHECK(worst <= 4);
  CHECK(loops::tanh(0.0f) == 0.0f);
  CHECK(loops::tanh(std::numeric_limits<float>::infinity()) == 1.0f);
  CHECK(std::isnan(loops::tanh(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace fp8kv
