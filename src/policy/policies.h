// The table of policies: the ways to make scales from magnitudes. make_scales.h applies a policy to
// a model.
#pragma once

#include <string>
#include <vector>

#include "core/cache/kv_format.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// The values that share one scale.
enum class ScaleSharing {
  tensor,  // one for K and one for V of a layer
  head,    // one for K and one for V of each KV head
  shared   // one for K and V of a layer together
};

enum class PolicyParameter { none, factor, percent };

// The input of a policy.
enum class PolicyNeeds {
  nothing,  // every scale is 1, in every format
  maxima,   // the largest magnitudes
  histograms,
  losses  // the maxima, and losses at each mantissa of a scale
};

struct PolicyKind {
  std::string name;      // "amax"
  std::string spelling;  // "amax[*F]"
  std::string summary;
  ScaleSharing sharing;
  PolicyParameter parameter;
  PolicyNeeds needs;
  // Returns the scale for values of these magnitudes, for E4M3FN or NVFP4; 1 if all are zero. Pure.
  // REQUIRES what `needs` says.
  float (*scale)(const MagnitudeCounts& counts, double parameter, KvFormat format);
  // Whether the policy can make scales for NVFP4, which has one scale per tensor.
  bool for_nvfp4() const;
};

const std::vector<PolicyKind>& policy_kinds();

// Whether the policy needs more than maxima, which histogram files have.
bool needs_histograms(const PolicyKind& kind);

// A policy with its parameter, as the user asked for it.
struct Policy {
  std::string text;  // "amax*2"
  const PolicyKind* kind;
  double parameter;  // the factor (1 unless given) or the percentile

  // The room above the largest magnitude: the scale is that of amax times this factor.
  double headroom() const;
};

// Parses "amax", "amax*2", "p99.99", ... Throws for an unknown policy, listing all spellings, and
// for a parameter out of range.
Policy parse_policy(const std::string& text);

// The amax policy, per KV head or not, with any factor.
Policy amax_policy(ScaleSharing sharing, double factor);

// The policy for layers whose losses are not measured: amax with the same sharing and headroom
// instead of one that needs losses. Others stay as they are.
Policy without_losses(const Policy& policy);

// The shortest spelling of the same policy: "amax" for "amax*1".
std::string policy_name(const Policy& policy);

// The smallest bound that `percent` % of the magnitudes do not exceed, rounded up to the width of a
// bin (1.6 %). 100 % is exactly amax. Returns 0 if there are no magnitudes.
float magnitude_percentile(const MagnitudeCounts& counts, double percent);

}  // namespace fp8kv
