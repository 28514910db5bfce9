// Merges calibrations of one model, as if all their data had been run at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "core/scales/scales.h"
#include "policy/magnitudes.h"
#include "policy/policies.h"

namespace fp8kv {

struct Calibration {
  std::string name;  // for messages: the quoted file
  KvScales scales;
};

// The full counts of one or several calibrations: see histogram_file.h.
struct Histograms {
  std::string name;  // for messages: the quoted file
  std::vector<LayerMagnitudes> layers;
};

struct MergeBy {
  std::optional<Policy> policy = {};  // of the result; default: the policy of the parts
  // The histograms of all parts, in any order, for policies that need them.
  std::vector<Histograms> histograms = {};
};

// Maxima are joined, counts add up, and the scales follow from both. The result is exact, and the
// same in any order and grouping. The files are sorted by name.
//
// The inputs are the parts of one sharded calibration, each at most once, or calibrations over
// disjoint data. Missing parts are reported on `log`, and stay recorded.
//
// Throws, naming both files and both values, unless all are calibrations of the same model, made in
// the same way. With a policy given, their own policies may differ. Throws if a file's scales do
// not follow from its own maxima, or if the histograms are not those of the parts. REQUIRES at
// least one part.
KvScales merge_calibrations(const std::vector<Calibration>& parts, Log& log,
                            const MergeBy& by = {});

}  // namespace fp8kv
