// The ways to make scales from magnitudes: what a policy is, and the list of all that there are.
// Making the scales of a model with one is make_scales.h.
#pragma once

#include <string>
#include <vector>

#include "core/kv_format.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// What one scale is made for.
enum class ScaleSharing {
  tensor,  // one for K and one for V of a layer
  head,    // one for K and one for V of each KV head
  shared   // one for K and V of a layer together
};

enum class PolicyParameter { none, factor, percent };

// What a policy makes scales from.
enum class PolicyNeeds {
  nothing,  // every scale is 1, in every format
  maxima,   // the largest magnitudes
  histograms
};

struct PolicyKind {
  std::string name;      // "amax"
  std::string spelling;  // "amax[*F]"
  std::string summary;
  ScaleSharing sharing;
  PolicyParameter parameter;
  PolicyNeeds needs;
  // The scale for values of these magnitudes, for E4M3FN or NVFP4; pure. 1 where all are zero.
  float (*scale)(const MagnitudeCounts& counts, double parameter, KvFormat format);
  // Whether it can make scales for NVFP4, which has one for each tensor.
  bool for_nvfp4() const;
};

const std::vector<PolicyKind>& policy_kinds();

// One as asked for.
struct Policy {
  std::string text;  // "amax*2"
  const PolicyKind* kind;
  double parameter;  // the factor (1 unless given) or the percentile

  // What the largest magnitude leaves free: its scale is that of amax times this.
  double headroom() const;
};

// "amax", "amax*2", "p99.99", ... Throws for what is none, with the list of the spellings, and for
// a parameter out of range.
Policy parse_policy(const std::string& text);

// amax, for each KV head or not, with a factor that may be any.
Policy amax_policy(ScaleSharing sharing, double factor);

// The shortest spelling of the same policy: "amax" for "amax*1".
std::string policy_name(const Policy& policy);

// The smallest bound that `percent` % of the magnitudes do not exceed, to the width of a bin
// (1.6 %), rounded up; 100 % is amax, exactly. 0 where there are no magnitudes.
float magnitude_percentile(const MagnitudeCounts& counts, double percent);

}  // namespace fp8kv
