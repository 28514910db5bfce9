// A map of the octaves that the values of K or V lie in, layer by layer, with the limits of FP8.
#pragma once

#include <string>
#include <vector>

#include "core/numbers/octaves.h"
#include "report/pages/range_chart.h"

namespace fp8kv {

struct LayerOctaveMap {
  CacheTensor tensor = CacheTensor::k;
  std::vector<std::string> layers;   // layer numbers
  std::vector<OctaveCounts> counts;  // one per layer
  RangeLimits limits;
};

// "" if no value was counted.
std::string octave_map(const LayerOctaveMap& of);

}  // namespace fp8kv
