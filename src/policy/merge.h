// The union of calibrations of one model: as if all their data had been run at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "core/scales.h"
#include "policy/magnitudes.h"
#include "policy/policies.h"

namespace fp8kv {

struct Calibration {
  std::string name;  // for messages: the quoted file
  KvScales scales;
};

// What a calibration, or several, counted in full: see histogram_file.h.
struct Histograms {
  std::string name;  // for messages: the quoted file
  std::vector<LayerMagnitudes> layers;
};

struct MergeBy {
  std::optional<Policy> policy = {};  // of the result; that of the parts unless given
  // In any order, of all parts: for policies that need them.
  std::vector<Histograms> histograms = {};
};

// Maxima are the larger ones, counts add up, and the scales follow from both: exact, and the same
// in any order and grouping. The files are in rising order of their names.
//
// The inputs are either parts of one sharded calibration, each part once, or calibrations over data
// that has nothing in common. Parts that are missing are said on `log`, and remain noted.
//
// Throws, naming both files and both values, unless all are calibrations of the same model made in
// the same way (where a policy is given, by any policies); when a file's scales are not those of
// its own maxima; and when the histograms are not those of the parts. REQUIRES at least one part.
KvScales merge_calibrations(const std::vector<Calibration>& parts, Log& log,
                            const MergeBy& by = {});

}  // namespace fp8kv
