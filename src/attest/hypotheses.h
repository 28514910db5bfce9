// The caches that a server may compute with, and that an attestation distinguishes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cache/cache_type.h"
#include "core/model/config.h"
#include "core/scales/scales.h"

namespace fp8kv {

// The cache that the server has. Caches with the same outcome differ only in how a kernel rounds.
enum class Outcome {
  sixteen_bit,    // no FP8 cache
  these_scales,   // FP8 with the scales that were given
  unit_scales,    // FP8 with 1.0 everywhere
  doubled,        // these scales times 2, as FNUZ formats store them
  halved,         // these scales / 2
  exchanged,      // K with the scale of V, and V with the scale of K
  e5m2,           // FP8 in E5M2, without scales
  layer_missing,  // these scales, but 1.0 in one layer
};

struct Hypothesis {
  Outcome outcome = Outcome::sixteen_bit;
  int64_t layer = -1;  // for layer_missing
  std::string name;    // "FP8 with these scales, rounded towards zero": unique
  ModelCache cache = CacheType();
  std::optional<KvScales> scales = {};  // absent: 1 everywhere, or no scales
};

// Whether both have the same outcome, that is the same scales, whatever else differs.
bool same_outcome(const Hypothesis& a, const Hypothesis& b);

// "these_scales", "layer_missing": for JSON.
const char* outcome_key(Outcome outcome);
// "these scales", "1.0 in layer 3 and these scales elsewhere": without the rounding.
std::string outcome_text(const Hypothesis& hypothesis);

struct HypothesisOptions {
  bool toward_zero = true;    // the device can round towards zero
  bool fp8_attention = true;  // the device can compute attention in FP8
};

// All hypotheses except missing layers. The first is 16 bit in the model's own dtype. Without
// `scales`, the only FP8 hypotheses with scales are those with 1.0. Scales are in E4M3FN.
std::vector<Hypothesis> main_hypotheses(const ModelConfig& config,
                                        const std::optional<KvScales>& scales,
                                        const HypothesisOptions& options);

// One hypothesis for every layer with a cache whose scales are not already 1: `base` without them.
std::vector<Hypothesis> missing_layers(const Hypothesis& base);

}  // namespace fp8kv
