// E4M3FN as kernels round to it that cut off digits, such as vLLM's for processors.
#pragma once

#include "core/fp8.h"
#include "core/half.h"

namespace fp8kv {

// The number nearest to x / scale among those of E4M3FN that are not above it in magnitude, times
// scale: encoding that by the same scale gives its code. Saturates, and keeps NaN.
inline float e4m3_toward_zero(float x, float scale) {
  constexpr uint32_t kMagnitude = 0x7FFFFFFFu;
  const float scaled = x / scale;
  const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(scaled);
  const float nearest = fp8_decode<Fp8Format::e4m3fn>(code);
  const bool above = (float_bits(nearest) & kMagnitude) > (float_bits(scaled) & kMagnitude);
  if (!above || nearest != nearest) return nearest * scale;
  return fp8_decode<Fp8Format::e4m3fn>(static_cast<uint8_t>(code - 1)) * scale;
}

}  // namespace fp8kv
