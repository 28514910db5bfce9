#include "core/scales/scale_grid.h"

#include <cmath>

namespace fp8kv {

float grid_scale(int i, float least) {
  const auto mantissa = static_cast<float>(std::exp2(static_cast<double>(i) / kScaleMantissas));
  int exponent = 0;
  std::frexp(least, &exponent);  // least is in [2^(exponent - 1), 2^exponent)
  const float scale = std::ldexp(mantissa, exponent - 1);
  return scale >= least ? scale : 2 * scale;
}

}  // namespace fp8kv
