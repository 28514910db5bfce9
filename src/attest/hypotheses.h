// The caches that a server may compute with, and that an attestation tells apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cache_type.h"
#include "core/config.h"
#include "core/scales.h"

namespace fp8kv {

// The cache that a server has. Two caches of one outcome differ in how a kernel rounds.
enum class Outcome {
  sixteen_bit,    // no FP8 cache
  these_scales,   // FP8 with the scales that were given
  unit_scales,    // FP8 with 1.0 everywhere
  doubled,        // these scales times 2, as FNUZ formats have them
  halved,         // these scales / 2
  exchanged,      // K by the scale of V, and V by that of K
  e5m2,           // another format of FP8, without scales
  layer_missing,  // these scales, but 1.0 in one layer
};

struct Hypothesis {
  Outcome outcome = Outcome::sixteen_bit;
  int64_t layer = -1;  // of layer_missing
  std::string name;    // "FP8 with these scales, rounded towards zero": unique
  ModelCache cache = CacheType();
  std::optional<KvScales> scales = {};  // absent: 1 everywhere, or none
};

// Whether both mean one outcome: whatever else differs, the server has the same scales.
bool same_outcome(const Hypothesis& a, const Hypothesis& b);

// "these_scales", "layer_missing": for JSON.
const char* outcome_key(Outcome outcome);
// "these scales", "1.0 in layer 3 and these scales elsewhere": without the rounding.
std::string outcome_text(const Hypothesis& hypothesis);

struct HypothesisOptions {
  bool toward_zero = true;    // the device can round so
  bool fp8_attention = true;  // and compute attention in FP8
};

// Everything but missing layers; the first is 16 bit in the model's own dtype. Without `scales`
// those with 1.0 are the only ones with scales. Scales are in E4M3FN.
std::vector<Hypothesis> main_hypotheses(const ModelConfig& config,
                                        const std::optional<KvScales>& scales,
                                        const HypothesisOptions& options);

// For every layer with a cache whose scales are not 1 already: `base` without them.
std::vector<Hypothesis> missing_layers(const Hypothesis& base);

}  // namespace fp8kv
