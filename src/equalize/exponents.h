// Exponents of powers of two that K is multiplied by, and Q divided by.
#pragma once

#include <cstdint>
#include <vector>

namespace fp8kv {

// No exponent goes beyond this. Dead channels would ask for more, which gains nothing.
inline constexpr int kMostExponent = 8;

// One for each group of channels.
using Exponents = std::vector<int>;

// The exponents that a group may have: those that leave every weight exact.
class ExponentSet {
 public:
  bool has(int exponent) const {
    if (exponent < -kMostExponent || exponent > kMostExponent) return false;
    return (bits_ >> (exponent + kMostExponent) & 1u) != 0;
  }
  void remove(int exponent) { bits_ &= ~(1u << (exponent + kMostExponent)); }

 private:
  uint32_t bits_ = (1u << (2 * kMostExponent + 1)) - 1;
};

}  // namespace fp8kv
