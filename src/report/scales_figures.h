// What calibration saw, layer by layer, as figures and tables of a page. Layers without a cache are
// left out. All REQUIRE the largest magnitudes of every layer.
#pragma once

#include <string>

#include "core/scales.h"
#include "report/range_chart.h"

namespace fp8kv {

// Largest and median magnitude of each layer, between the format's limits.
std::string range_figure(const KvScales& scales, CacheTensor tensor);

// For each layer the share of its values in every octave; "" where they were not counted.
std::string octave_figure(const KvScales& scales, CacheTensor tensor);

// What half of the text reached, against all of it; "" where that is not known.
std::string half_figure(const KvScales& scales);
std::string half_table(const KvScales& scales);

}  // namespace fp8kv
