// The counted magnitudes of Q, K and V in a layer, from which scales are made. Plain values that
// add up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/scales/scales.h"

namespace fp8kv {

// The statistics of one head, or the sum of several heads.
struct MagnitudeCounts {
  float amax = 0;
  uint64_t nonfinite = 0;
  std::vector<uint64_t> bins;  // kMagnitudeBins
  // [kScaleMantissas]: sums of losses, in units of kLossUnit (core/scales/scale_grid.h). Empty: not
  // measured.
  std::vector<uint64_t> losses = {};

  void add(const MagnitudeCounts& other);
};

// [n_kv_heads] each. Q of a KV head covers all query heads that read it.
struct LayerMagnitudes {
  std::vector<MagnitudeCounts> q, k, v;

  // A layer that writes no cache counts nothing.
  bool has_cache() const { return !k.empty(); }
  void add(const LayerMagnitudes& other);
};

// Adds layer by layer. A `sum` without layers becomes a copy of `other`. REQUIRES the same layers
// and heads.
void add_up(std::vector<LayerMagnitudes>& sum, const std::vector<LayerMagnitudes>& other);

LayerAmax layer_amax(const LayerMagnitudes& layer);

// Raises each maximum of `amax` to that of `other`, if larger. REQUIRES the same heads.
void add_up(LayerAmax& amax, const LayerAmax& other);
// Adds the tokens and joins the maxima of two texts. REQUIRES the same layers and heads, if both
// have layers.
void add_up(AmaxAfter& sum, const AmaxAfter& other);

// Returns magnitudes without histograms, from maxima alone.
std::vector<LayerMagnitudes> magnitudes_of(const std::vector<LayerAmax>& layers);

// Decodes `words` as RopeAppend fills them: [3, n_kv_heads, kMagnitudeWords].
// Throws for a NaN or infinite value, naming tensor, layer and head.
LayerMagnitudes magnitudes_from(std::span<const uint64_t> words, int64_t n_kv_heads, int64_t layer);
// The inverse of magnitudes_from.
std::vector<uint64_t> words_of(const LayerMagnitudes& layer);

}  // namespace fp8kv
