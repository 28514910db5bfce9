// Instructions that work in a single lane: arithmetic, comparisons and conversions.
#include <bit>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "ptx/run_ptx.h"

namespace fp8kv {
namespace {

using test::run_ptx;

// The result of one instruction "op %r4, %r0, ..." on registers of 32 bits, in lane 0.
uint32_t of_words(const std::string& operation, const std::vector<uint32_t>& sources) {
  std::string lines, names;
  for (size_t i = 0; i < sources.size(); ++i) {
    lines += cat("mov.b32 %r", i, ", ", sources[i], ";\n");
    names += cat(", %r", i);
  }
  lines += cat(operation, " %r4", names, ";\nst.global.u32 [%out], %r4;");
  return run_ptx({.lines = lines})[0];
}

float of_floats(const std::string& operation, const std::vector<float>& sources) {
  std::string lines, names;
  for (size_t i = 0; i < sources.size(); ++i) {
    lines += cat("mov.b32 %r0, ", std::bit_cast<uint32_t>(sources[i]),
                 ";\nst.global.u32 [%out], %r0;\nld.global.f32 %f", i, ", [%out];\n");
    names += cat(", %f", i);
  }
  lines += cat(operation, " %f4", names, ";\nst.global.f32 [%out], %f4;");
  return std::bit_cast<float>(run_ptx({.lines = lines})[0]);
}

// Runs conversion `lines` on each of these words.
std::vector<uint32_t> converted(const std::string& lines, const std::vector<uint32_t>& words) {
  std::vector<uint32_t> all;
  for (size_t i = 0; i < words.size(); i += 1024) {
    std::vector<uint32_t> in(
        words.begin() + static_cast<ptrdiff_t>(i),
        words.begin() + static_cast<ptrdiff_t>(std::min(words.size(), i + 1024)));
    const auto threads = static_cast<uint32_t>(in.size());
    const std::vector<uint32_t> out = run_ptx({.lines = lines, .threads = threads}, in);
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

// The value of a code by the definition of its format.
double value_of(uint32_t code, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = code >> mantissa_bits & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double size = 0;
  if (has_infinity && exponent == (1u << exponent_bits) - 1) {
    size = mantissa == 0 ? std::numeric_limits<double>::infinity() : NAN;
  } else if (exponent == 0) {
    size = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    size = std::ldexp(mantissa + (1u << mantissa_bits),
                      static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return code >> (exponent_bits + mantissa_bits) & 1 ? -size : size;
}

// The code from 0 to `last` that is nearest to x, ties to even. Values must rise with the code.
uint32_t nearest_code(double x, int exponent_bits, int mantissa_bits, uint32_t last) {
  uint32_t low = 0, high = last;
  const auto at = [&](uint32_t code) {
    return value_of(code, exponent_bits, mantissa_bits, false);
  };
  if (x >= at(last)) return last;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (at(middle) <= x ? low : high) = middle;
  }
  const double below = x - at(low), above = at(high) - x;
  return below < above || (below == above && low % 2 == 0) ? low : high;
}

}  // namespace

TEST_CASE("ptx: integer arithmetic wraps, and keeps the sign where the type has one") {
  CHECK(of_words("add.s32", {0x7FFFFFFF, 1}) == 0x80000000);
  CHECK(of_words("sub.u32", {0, 1}) == 0xFFFFFFFF);
  CHECK(of_words("mul.lo.s32", {0x10001, 0x10001}) == 0x20001);
  CHECK(of_words("mul.hi.s32", {0x80000000, 2}) == 0xFFFFFFFF);
  CHECK(of_words("mad.lo.s32", {3, 5, 0xFFFFFFFE}) == 13);
  CHECK(of_words("div.s32", {static_cast<uint32_t>(-7), 2}) == static_cast<uint32_t>(-3));
  CHECK(of_words("rem.s32", {static_cast<uint32_t>(-7), 2}) == static_cast<uint32_t>(-1));
  CHECK(of_words("div.u32", {static_cast<uint32_t>(-7), 2}) == 0x7FFFFFFC);
  CHECK(of_words("min.s32", {0xFFFFFFFF, 1}) == 0xFFFFFFFF);
  CHECK(of_words("max.u32", {0xFFFFFFFF, 1}) == 0xFFFFFFFF);
  CHECK(of_words("neg.s32", {5}) == static_cast<uint32_t>(-5));
}

TEST_CASE("ptx: shifts of 32 and more give 0 or the sign") {
  CHECK(of_words("shl.b32", {1, 31}) == 0x80000000);
  CHECK(of_words("shl.b32", {1, 32}) == 0);
  CHECK(of_words("shr.u32", {0x80000000, 31}) == 1);
  CHECK(of_words("shr.u32", {0x80000000, 32}) == 0);
  CHECK(of_words("shr.s32", {0x80000000, 40}) == 0xFFFFFFFF);
  CHECK(of_words("shr.s32", {0x80000000, 4}) == 0xF8000000);
}

TEST_CASE("ptx: bits and bytes") {
  CHECK(of_words("and.b32", {0xF0F0, 0xFF00}) == 0xF000);
  CHECK(of_words("or.b32", {0xF0F0, 0xFF00}) == 0xFFF0);
  CHECK(of_words("xor.b32", {0xF0F0, 0xFF00}) == 0x0FF0);
  CHECK(of_words("not.b32", {0xF0F0}) == 0xFFFF0F0F);
  CHECK(of_words("prmt.b32", {0x33221100, 0x77665544, 0x7410}) == 0x77441100);
  // Selectors of 8 and more repeat the sign of their byte.
  CHECK(of_words("prmt.b32", {0x00008001, 0, 0x0098}) == 0x0101FF00);
}

TEST_CASE("ptx: sums and products of f32 round as asked") {
  const float half_ulp = std::ldexp(1.0f, -24), tiny = std::ldexp(1.0f, -60);
  CHECK(of_floats("add.rn.f32", {1, half_ulp}) == 1);
  CHECK(of_floats("add.rn.f32", {1, 1.5f * half_ulp}) == 1 + 2 * half_ulp);
  CHECK(of_floats("add.rz.f32", {1, 1.5f * half_ulp}) == 1);
  CHECK(of_floats("add.rz.f32", {-1, -1.5f * half_ulp}) == -1);
  CHECK(of_floats("add.rz.f32", {1, -tiny}) == 1 - half_ulp);
  CHECK(of_floats("fma.rm.f32", {1, 1, -tiny}) == 1 - half_ulp);
  CHECK(of_floats("fma.rm.f32", {1, 1, tiny}) == 1);
  CHECK(of_floats("fma.rm.f32", {-1, 1, -tiny}) == -(1 + 2 * half_ulp));
  // An fma rounds once. The product alone would round to 1.
  CHECK(of_floats("fma.rn.f32", {1 + 2 * half_ulp, 1 - 2 * half_ulp, -1}) ==
        -std::ldexp(1.0f, -46));
}

TEST_CASE("ptx: the larger of a number and a NaN is the number, and +0 is above -0") {
  CHECK(of_floats("max.f32", {NAN, 2}) == 2);
  CHECK(of_floats("min.f32", {2, NAN}) == 2);
  CHECK_FALSE(std::signbit(of_floats("max.f32", {-0.0f, 0.0f})));
  CHECK(std::signbit(of_floats("min.f32", {0.0f, -0.0f})));
  CHECK(of_floats("copysign.f32", {-1, 3}) == -3);
}

TEST_CASE("ptx: approximate functions flush subnormals") {
  CHECK(of_floats("ex2.approx.ftz.f32", {10}) == 1024);
  CHECK(of_floats("ex2.approx.ftz.f32", {-127}) == 0);
  CHECK(std::isinf(of_floats("rcp.approx.ftz.f32", {1e-40f})));
  CHECK(of_floats("cvt.sat.f32.f32", {NAN}) == 0);
  CHECK(of_floats("cvt.sat.f32.f32", {1.5f}) == 1);
}

TEST_CASE("ptx: comparisons with a NaN hold only where they are unordered") {
  for (const auto& [name, holds] : {std::pair{"lt", 0u},
                                    {"ge", 0u},
                                    {"eq", 0u},
                                    {"ne", 0u},
                                    {"ltu", 1u},
                                    {"geu", 1u},
                                    {"neu", 1u},
                                    {"nan", 1u}}) {
    CAPTURE(name);
    const std::string lines = cat("mov.f32 %f0, 0f7FC00000;\nmov.f32 %f1, 0f3F800000;\nsetp.", name,
                                  ".f32 %p1, %f0, %f1;\nselp.b32 %r0, 1, 0, %p1;\n"
                                  "st.global.u32 [%out], %r0;");
    CHECK(run_ptx({.lines = lines})[0] == holds);
  }
}

TEST_CASE("ptx: floats become integers toward zero, within their range, and NaN 0") {
  const auto to = [](const std::string& type, float x) {
    const std::string lines = cat("ld.global.f32 %f0, [%in];\ncvt.rzi.", type,
                                  ".f32 %r0, %f0;\nst.global.u32 [%out], %r0;");
    return converted(lines, std::vector<uint32_t>(32, std::bit_cast<uint32_t>(x)))[0];
  };
  CHECK(to("s32", -2.75f) == static_cast<uint32_t>(-2));
  CHECK(to("s32", 1e20f) == 0x7FFFFFFF);
  CHECK(to("s32", -1e20f) == 0x80000000);
  CHECK(to("u32", -1.0f) == 0);
  CHECK(to("u32", 4e9f) == 4000000000u);
  CHECK(to("u32", 1e20f) == 0xFFFFFFFF);
  CHECK(to("s32", NAN) == 0);
}

TEST_CASE("ptx: a narrow integer in a wide register is cut and extended by its own sign") {
  const std::vector<uint32_t> in(32, 0x12345680);
  CHECK(converted("ld.global.u32 %r0, [%in];\ncvt.s32.s8 %r1, %r0;\nst.global.u32 [%out], %r1;",
                  in)[0] == 0xFFFFFF80);
  CHECK(converted("ld.global.u32 %r0, [%in];\ncvt.u32.u8 %r1, %r0;\nst.global.u32 [%out], %r1;",
                  in)[0] == 0x80);
  CHECK(converted("ld.global.u16 %h0, [%in];\ncvt.s16.s8 %h1, %h0;\nst.global.u32 [%out], 0;\n"
                  "st.global.u16 [%out], %h1;",
                  in)[0] == 0xFF80);
  CHECK(converted("ld.global.s8 %r0, [%in];\nst.global.u32 [%out], %r0;", in)[0] == 0xFFFFFF80);
}

TEST_CASE("ptx: every f16 and bf16 code becomes its value and comes back") {
  std::vector<uint32_t> codes(65536);
  for (uint32_t i = 0; i < codes.size(); ++i) codes[i] = i;
  for (const auto& [type, exponent, mantissa] : {std::tuple{"f16", 5, 10}, {"bf16", 8, 7}}) {
    CAPTURE(type);
    const std::vector<uint32_t> values = converted(
        cat("ld.global.u16 %h0, [%in];\ncvt.f32.", type, " %f0, %h0;\nst.global.f32 [%out], %f0;"),
        codes);
    const std::vector<uint32_t> back =
        converted(cat("ld.global.f32 %f0, [%in];\ncvt.rn.", type,
                      ".f32 %h0, %f0;\nst.global.u32 [%out], 0;\nst.global.u16 [%out], %h0;"),
                  values);
    size_t wrong = 0;
    for (const uint32_t code : codes) {
      const double expected = value_of(code, exponent, mantissa, true);
      const float found = std::bit_cast<float>(values[code]);
      if (std::isnan(expected)) {
        wrong += !std::isnan(found) || back[code] != 0x7FFF;
      } else {
        wrong += double{found} != expected || std::signbit(found) != std::signbit(expected);
        wrong += back[code] != code;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("ptx: f32 becomes the nearest FP8 code, saturated, and NaN the canonical one") {
  std::vector<uint32_t> floats;
  for (uint32_t code = 0; code < 65536; ++code) {  // each value exactly, and just below
    for (const uint32_t beside : {0u, 1u}) floats.push_back((code << 16) - beside);
  }
  for (const auto& [type, exponent, mantissa, last] :
       {std::tuple{"e4m3", 4, 3, 0x7Eu}, {"e5m2", 5, 2, 0x7Bu}}) {
    CAPTURE(type);
    // The second source goes into the low byte.
    const std::vector<uint32_t> found = converted(
        cat("ld.global.f32 %f0, [%in];\nmov.f32 %f1, 0f3F800000;\ncvt.rn.satfinite.", type,
            "x2.f32 %h0, %f1, %f0;\nst.global.u32 [%out], 0;\nst.global.u16 [%out], %h0;"),
        floats);
    const uint32_t one = nearest_code(1, exponent, mantissa, last);
    size_t wrong = 0;
    for (size_t i = 0; i < floats.size(); ++i) {
      const float x = std::bit_cast<float>(floats[i]);
      uint32_t expected = 0x7F;
      if (!std::isnan(x)) {
        expected = nearest_code(std::fabs(double{x}), exponent, mantissa, last) |
                   (std::signbit(x) ? 0x80 : 0);
      }
      wrong += found[i] != (expected | one << 8);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("ptx: every pair of E4M3 codes becomes two f16") {
  std::vector<uint32_t> codes(256);
  for (uint32_t i = 0; i < 256; ++i) codes[i] = i | (255 - i) << 8;
  const std::vector<uint32_t> pairs = converted(
      "ld.global.u16 %h0, [%in];\ncvt.rn.f16x2.e4m3x2 %r0, %h0;\nst.global.u32 [%out], %r0;",
      codes);
  for (uint32_t i = 0; i < 256; ++i) {
    for (const auto& [code, half] : {std::pair{i, pairs[i] & 0xFFFF}, {255 - i, pairs[i] >> 16}}) {
      CAPTURE(code);
      const bool is_nan = (code & 0x7F) == 0x7F;
      if (is_nan) CHECK(half == 0x7FFF);
      if (!is_nan) CHECK(value_of(half, 5, 10, true) == value_of(code, 4, 3, false));
    }
  }
}

TEST_CASE("ptx: an unknown instruction is named with its kernel") {
  CHECK_THROWS_WITH_AS(
      run_ptx({.lines = "tanh.approx.f32 %f0, %f1;"}),
      "scene: 'tanh.approx.f32 %f0, %f1': the executor does not know this instruction", Error);
}

}  // namespace fp8kv
