// Whether scales follow from the largest magnitudes beside them: the one check of every reader of
// scale files. Makes no scales from histograms; those are held to bounds.
#pragma once

#include <string>

#include "core/scales.h"

namespace fp8kv {

// Throws unless every scale, of draft layers too, is what its policy makes of the amax beside it,
// naming layer, K or V, scale, amax and what was expected. Nothing is checked without amax, or
// under a policy that is not known here.
//   amax, head, shared   amax / 448 times the headroom, to 2^-22: older versions rounded otherwise
//   unit                 1, in every format
//   mse                  amax / 448, or at most four octaves from it
//   pNN.NN               at most amax / 448, or 1 where that percentile is 0
// Any of these may be raised to the next power of two, as inject --scale-rounding does.
// A latent cache shares its scale between K and V. `source` begins the message.
void check_follows_amax(const KvScales& scales, const std::string& source);

}  // namespace fp8kv
