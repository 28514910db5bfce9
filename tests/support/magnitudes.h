// Magnitudes of a few values, counted as a backend counts them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numbers/half.h"
#include "core/numbers/histogram.h"
#include "policy/magnitudes.h"

namespace fp8kv::test {

inline MagnitudeCounts counts_of(const std::vector<float>& values) {
  MagnitudeCounts counts;
  counts.bins.resize(kMagnitudeBins);
  for (const float value : values) {
    const float magnitude = std::fabs(value);
    counts.amax = std::max(counts.amax, magnitude);
    ++counts.bins[static_cast<size_t>(magnitude_bin(float_bits(magnitude)))];
  }
  return counts;
}

}  // namespace fp8kv::test
