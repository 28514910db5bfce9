// Checks that scales follow from the largest magnitudes stored beside them. Every reader of scale
// files uses this check. Scales made from histograms cannot be recomputed, so they are held to
// bounds.
#pragma once

#include <string>

#include "core/scales/scales.h"

namespace fp8kv {

// Throws unless every scale, including those of draft layers, is what its policy makes of the amax
// beside it. The message names the layer, K or V, the scale, the amax and the expected value.
// Scales without an amax, or under an unknown policy, are not checked.
//   amax, head, shared   amax / 448 times the headroom, to 2^-22: older versions rounded otherwise
//   loss, head-loss      from amax / 448 times the headroom to twice that
//   unit                 1, in every format
//   mse                  amax / 448, or at most four octaves from it
//   pNN.NN               at most amax / 448, or 1 where that percentile is 0
// Any of these may be raised to the next power of two, as inject --scale-rounding does.
// A latent cache shares its scale between K and V. `source` begins the message.
void check_follows_amax(const KvScales& scales, const std::string& source);

}  // namespace fp8kv
