// From magnitudes to scales.
#pragma once

#include <string>
#include <vector>

#include "calib/collect.h"
#include "core/scales.h"

namespace fp8kv {

enum class Granularity { tensor, head };

struct ScalePolicy {
  Granularity granularity = Granularity::tensor;
  double headroom = 1.0;  // multiplies every scale; >= 1 leaves room above the largest value seen
};

// E4M3FN scales that put the largest magnitude at 448 / headroom; 1 where that is zero.
LayerScales scales_from(const LayerAmax& amax, const ScalePolicy& policy);

// The same for every layer. Says on `log` which layers were all zero and got a scale of 1.
std::vector<LayerScales> scales_of(const std::vector<LayerAmax>& amax, const ScalePolicy& policy,
                                   Log& log);

// Scales with the amax and the octaves they came from.
KvScales make_scales(const std::vector<LayerMagnitudes>& layers, const ScalePolicy& policy,
                     Log& log);

}  // namespace fp8kv
