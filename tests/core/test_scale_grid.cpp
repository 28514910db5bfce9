#include <cmath>
#include <initializer_list>

#include <doctest/doctest.h>

#include "core/scales/scale_grid.h"

using namespace fp8kv;

TEST_CASE("scale_grid: the smallest scale with the mantissa that is large enough") {
  for (int i = 0; i < kScaleMantissas; ++i) {
    const double mantissa = std::exp2(i / 16.0);
    for (const float least : {1.0f, 1.0000001f, 1.5f, 1.9999999f, 0.003f, 3e-38f, 7e30f,
                              static_cast<float>(mantissa), static_cast<float>(mantissa / 64)}) {
      CAPTURE(i);
      CAPTURE(least);
      const float scale = grid_scale(i, least);
      CHECK(scale >= least);
      CHECK(scale / 2 < least);
      int exponent = 0;
      CHECK(2 * std::frexp(scale, &exponent) == static_cast<float>(mantissa));
    }
  }
}
