// The 4-bit float E2M1: a sign, two bits of exponent, one of mantissa.
// Source: OCP Microscaling Formats 1.0.
#pragma once

#include <cstdint>

#include "core/numbers/half.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// Rounds to the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, ties to the even code, and saturates.
// NaN becomes the largest code.
FP8KV_HD uint8_t e2m1_encode(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  uint32_t code = 7;
  if (magnitude <= 0.25f) {
    code = 0;
  } else if (magnitude < 0.75f) {
    code = 1;
  } else if (magnitude <= 1.25f) {
    code = 2;
  } else if (magnitude < 1.75f) {
    code = 3;
  } else if (magnitude <= 2.5f) {
    code = 4;
  } else if (magnitude < 3.5f) {
    code = 5;
  } else if (magnitude <= 5.0f) {
    code = 6;
  }
  return static_cast<uint8_t>((float_bits(x) >> 28 & 8u) | code);
}

// Exact.
FP8KV_HD constexpr float e2m1_decode(uint32_t code) {
  const uint32_t magnitude = code & 7u;
  // 0, 0.5, 1, 1.5, 2, 3, 4, 6
  const float value = magnitude < 5 ? 0.5f * static_cast<float>(magnitude)
                                    : static_cast<float>(magnitude < 7 ? magnitude - 2u : 6u);
  return (code & 8u) != 0 ? -value : value;
}

}  // namespace fp8kv
