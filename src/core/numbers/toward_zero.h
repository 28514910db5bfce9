// E4M3FN rounded towards zero, like kernels that cut off digits, such as vLLM's for processors.
#pragma once

#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

namespace fp8kv {

// Rounds x / scale to the nearest E4M3FN value that is not larger in magnitude, and multiplies it
// by scale. Encoding the result by the same scale gives that value's code. Saturates, and keeps
// NaN.
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
