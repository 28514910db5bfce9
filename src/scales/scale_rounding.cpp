#include "scales/scale_rounding.h"

#include <cmath>

#include "base/text.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

bool is_lost(float stored, DType dtype) {
  const float least_normal = dtype == DType::f16 ? 0x1p-14f : 0x1p-126f;
  return !std::isfinite(stored) || stored < least_normal;
}

}  // namespace

ScaleRounding scale_rounding(const KvScales& scales, DType dtype) {
  ScaleRounding found;
  const auto look = [&](size_t layer, char of, const std::vector<float>& values) {
    for (const float scale : values) {
      const ScaleAt at{layer, of, scale, rounded_to(scale, dtype)};
      if (is_lost(at.stored, dtype)) {
        if (!found.lost) found.lost = at;
        continue;
      }
      const double error = std::abs(double(at.stored) / scale - 1);
      if (error <= found.error) continue;
      found.error = error;
      found.farthest = at;
    }
  };
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    look(layer, 'K', scales.layers[layer].k);
    look(layer, 'V', scales.layers[layer].v);
  }
  return found;
}

std::string lost_text(const ScaleAt& lost, DType dtype) {
  const std::string becomes = lost.stored == 0              ? "becomes 0"
                              : !std::isfinite(lost.stored) ? "becomes infinite"
                              : lost.stored == lost.scale
                                  ? "is subnormal"
                                  : cat("becomes ", lost.stored, ", a subnormal number,");
  return cat("layer ", lost.layer, " ", lost.of, ": ", lost.scale, " ", becomes, " in ",
             dtype == DType::f16 ? "float16" : "bfloat16");
}

KvScales at_powers_of_two(const KvScales& scales) {
  KvScales out = scales;
  const auto raise = [](std::vector<float>& values) {
    for (float& scale : values) {
      int exponent = 0;
      const float mantissa = std::frexp(scale, &exponent);  // in [0.5, 1)
      scale = std::ldexp(1.0f, mantissa == 0.5f ? exponent - 1 : exponent);
    }
  };
  for (LayerScales& layer : out.layers) {
    raise(layer.k);
    raise(layer.v);
  }
  return out;
}

}  // namespace fp8kv
