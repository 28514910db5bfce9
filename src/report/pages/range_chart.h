// Charts of the magnitudes of K or V, layer by layer, between the limits of a format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/numbers/fp8.h"
#include "draw/chart.h"

namespace fp8kv {

enum class CacheTensor { k, v };

struct LayerRanges {
  CacheTensor tensor = CacheTensor::k;
  std::vector<std::string> layers;  // layer numbers
  std::vector<double> largest;      // one per layer
  std::vector<double> median;       // one per layer, or empty if unknown
};

struct RangeLimits {
  Fp8Spec spec;
  std::vector<double> scales;  // one per layer
  std::string whose;           // "fp8_e4m3 amax"
  int style = 0;               // line style of the limits
};

// Without limits, shows only the magnitudes.
Chart range_chart(const LayerRanges& ranges, const std::optional<RangeLimits>& limits);

// Names for the layers with these numbers, for the x axis.
std::vector<std::string> layer_names(const std::vector<size_t>& layers);

// "K" or "V".
const char* tensor_letter(CacheTensor tensor);

}  // namespace fp8kv
