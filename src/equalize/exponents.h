// Exponents of the powers of two that multiply K and divide Q.
#pragma once

#include <cstdint>
#include <vector>

namespace fp8kv {

// The largest exponent in either direction. Dead channels would ask for more, without any gain.
inline constexpr int kMostExponent = 8;

// One exponent for each group of channels.
using Exponents = std::vector<int>;

// The exponents that a group may have: those that keep every weight exact.
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
