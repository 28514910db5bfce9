// Integers in the order of floats.
#pragma once

#include <cstdint>

#include "core/numbers/half.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// A larger number for a larger x. -0 comes before 0. Every NaN is 0, which no number is.
FP8KV_HD uint32_t float_order(float x) {
  const uint32_t bits = float_bits(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

}  // namespace fp8kv
