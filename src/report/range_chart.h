// Magnitudes of K or V, layer by layer, between the limits of a format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/fp8.h"

namespace fp8kv {

enum class CacheTensor { k, v };

struct LayerRanges {
  CacheTensor tensor = CacheTensor::k;
  std::vector<std::string> layers;  // their numbers
  std::vector<double> largest;      // of each of them
  std::vector<double> median;       // of each, or empty where that is not known
};

struct RangeLimits {
  Fp8Spec spec;
  std::vector<double> scales;  // of each of the layers
  std::string whose;           // "fp8_e4m3 amax"
  int style = 0;               // of the limits' line
};

// Without limits, the magnitudes alone.
std::string range_chart(const LayerRanges& ranges, const std::optional<RangeLimits>& limits);

// The places of layers with these numbers.
std::vector<std::string> layer_names(const std::vector<size_t>& layers);

// "K" or "V".
const char* tensor_letter(CacheTensor tensor);

}  // namespace fp8kv
