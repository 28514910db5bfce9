// The ways to make scales from magnitudes that `eval` can compare: what --policy accepts.
#pragma once

#include <string>
#include <vector>

#include "calib/magnitudes.h"
#include "core/scales.h"

namespace fp8kv {

// What one scale is made for.
enum class ScaleSharing {
  tensor,  // one for K and one for V of a layer
  head,    // one for K and one for V of each KV head
  shared   // one for K and V of a layer together
};

enum class PolicyParameter { none, factor, percent };

struct PolicyKind {
  std::string name;      // "amax"
  std::string spelling;  // "amax[*F]"
  std::string summary;
  ScaleSharing sharing;
  PolicyParameter parameter;
  // The E4M3FN scale for values of these magnitudes; pure. 1 where all are zero.
  float (*scale)(const MagnitudeCounts& counts, double parameter);
};

const std::vector<PolicyKind>& policy_kinds();

// One as asked for.
struct Policy {
  std::string text;  // "amax*2"
  const PolicyKind* kind;
  double parameter;  // the factor (1 unless given) or the percentile
};

// "amax", "amax*2", "p99.99", ... Throws a usage Error that lists the spellings.
Policy parse_policy(const std::string& text);

// E4M3FN scales for every layer.
KvScales policy_scales(const Policy& policy, const std::vector<LayerMagnitudes>& layers);

// The smallest bound that `percent` % of the magnitudes do not exceed, to the width of a bin
// (1.6 %), rounded up; 100 % is amax, exactly. 0 where there are no magnitudes.
float magnitude_percentile(const MagnitudeCounts& counts, double percent);

}  // namespace fp8kv
