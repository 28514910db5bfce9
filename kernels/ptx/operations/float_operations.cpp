// Arithmetic of f32 and f64.
#include <cmath>
#include <limits>

#include "kernels/ptx/operations/floats.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

// Flushes subnormal numbers to 0, and keeps the sign.
float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

// PTX ISA 9.7.3.11, 9.7.3.12: between a NaN and a number, the number wins; +0 is larger than -0.
template <typename T>
T larger(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename T>
T smaller(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

// PTX ISA 9.7.3.3 to 9.7.3.12.
template <typename T>
void add_arithmetic(Operations& o, const std::string& type) {
  for (const char* rounding : {".rn.", "."}) {
    add_map<T, T, T>(o, "add" + (rounding + type), [](T a, T b) { return a + b; });
    add_map<T, T, T>(o, "sub" + (rounding + type), [](T a, T b) { return a - b; });
    add_map<T, T, T>(o, "mul" + (rounding + type), [](T a, T b) { return a * b; });
  }
  add_map<T, T, T>(o, "div.rn." + type, [](T a, T b) { return a / b; });
  add_map<T, T, T, T>(o, "fma.rn." + type, [](T a, T b, T c) { return std::fma(a, b, c); });
  add_map<T, T, T>(o, "max." + type, [](T a, T b) { return larger(a, b); });
  add_map<T, T, T>(o, "min." + type, [](T a, T b) { return smaller(a, b); });
  add_map<T, T>(o, "neg." + type, [](T a) { return -a; });
  add_map<T, T>(o, "abs." + type, [](T a) { return std::fabs(a); });
  add_map<T, T>(o, "sqrt.rn." + type, [](T a) { return std::sqrt(a); });
  add_map<T, T>(o, "rcp.rn." + type, [](T a) { return T{1} / a; });
  // The first operand has the sign.  PTX ISA 9.7.3.2.
  add_map<T, T, T>(o, "copysign." + type, [](T a, T b) { return std::copysign(b, a); });
}

}  // namespace

void add_float_operations(Operations& o) {
  add_arithmetic<float>(o, "f32");
  add_arithmetic<double>(o, "f64");
  add_map<float, float, float>(o, "add.rz.f32",
                               [](float a, float b) { return sum_toward_zero(a, b); });
  add_map<float, float, float, float>(
      o, "fma.rm.f32", [](float a, float b, float c) { return fused_down(a, b, c); });
  // Approximate on a device; here the nearest number.  PTX ISA 9.7.3.13, 9.7.3.21.
  add_map<float, float>(o, "rcp.approx.ftz.f32",
                        [](float a) { return flushed(1.0f / flushed(a)); });
  add_map<float, float>(o, "ex2.approx.ftz.f32",
                        [](float a) { return flushed(std::exp2(flushed(a))); });
}

}  // namespace fp8kv::ptx
