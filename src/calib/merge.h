// The union of calibrations of one model: as if all their data had been run at once.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "core/scales.h"

namespace fp8kv {

struct Calibration {
  std::string name;  // for messages: the quoted file
  KvScales scales;
};

// Maxima are the larger ones, counts add up, and the scales follow from the maxima: exact, and the
// same in any order and grouping. The files are in rising order of their names.
// The inputs are either parts of one sharded calibration, each part once, or calibrations over data
// that has nothing in common. Parts that are missing are said on `log`, and remain noted.
// Throws, naming both files and both values, unless all are calibrations of the same model made in
// the same way, and when a file's scales are not those of its own maxima. REQUIRES at least one.
KvScales merge_calibrations(const std::vector<Calibration>& parts, Log& log);

}  // namespace fp8kv
