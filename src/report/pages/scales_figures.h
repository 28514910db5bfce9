// Figures and tables of what calibration saw in each layer. Layers without a cache are left out.
// All REQUIRE the largest magnitudes of every layer.
#pragma once

#include <string>

#include "core/scales/scales.h"
#include "report/pages/range_chart.h"

namespace fp8kv {

// The largest and median magnitude of each layer, between the format's limits.
std::string range_figures(const KvScales& scales);

// For each layer the share of values in every octave; "" if octaves were not counted.
std::string octave_figure(const KvScales& scales, CacheTensor tensor);

// The amax after half of the text against that after all of it; "" if the half is unknown.
std::string half_figure(const KvScales& scales);
std::string half_table(const KvScales& scales);

}  // namespace fp8kv
