// The scales whose loss is measured: every power of two times one of 16 mantissas. FP8 is a
// floating-point format, so scales that differ by a power of two round alike, short of its ends.
#pragma once

namespace fp8kv {

// Mantissa i is 2^(i / 16).
inline constexpr int kScaleMantissas = 16;

// Returns the smallest scale with mantissa i that is at least `least`. REQUIRES 0 <= i <
// kScaleMantissas, and a positive, finite `least`.
float grid_scale(int i, float least);

// Losses are counted in this unit, as integers, so that sums do not depend on their order. A loss
// of 1 is as large as what it disturbs.
inline constexpr double kLossUnit = 0x1p-40;

}  // namespace fp8kv
