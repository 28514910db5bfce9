// What was counted of Q, K and V in a layer: what scales are made from. Plain values that add up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/scales.h"

namespace fp8kv {

// Statistics of one head, or of several added up.
struct MagnitudeCounts {
  float amax = 0;
  uint64_t nonfinite = 0;
  std::vector<uint64_t> bins;  // kMagnitudeBins

  void add(const MagnitudeCounts& other);
};

// [n_kv_heads] each. Q of a KV head is that of all query heads that read it.
struct LayerMagnitudes {
  std::vector<MagnitudeCounts> q, k, v;

  // Layers that write no cache count nothing.
  bool has_cache() const { return !k.empty(); }
  void add(const LayerMagnitudes& other);
};

// Adds layer by layer; a `sum` without layers becomes the same as `other`. REQUIRES the same layers
// and heads.
void add_up(std::vector<LayerMagnitudes>& sum, const std::vector<LayerMagnitudes>& other);

LayerAmax layer_amax(const LayerMagnitudes& layer);

// Raises each maximum of `amax` to that of `other`. REQUIRES the same heads.
void add_up(LayerAmax& amax, const LayerAmax& other);
// The text of both. REQUIRES the same layers and heads, where both have layers.
void add_up(AmaxAfter& sum, const AmaxAfter& other);

// Magnitudes of which only the maxima are known: without histograms.
std::vector<LayerMagnitudes> magnitudes_of(const std::vector<LayerAmax>& layers);

// `words` as RopeAppend fills them: [3, n_kv_heads, kMagnitudeWords].
// Throws when a value was NaN or infinite, naming tensor, layer and head.
LayerMagnitudes magnitudes_from(std::span<const uint64_t> words, int64_t n_kv_heads, int64_t layer);
// The words that it was made from.
std::vector<uint64_t> words_of(const LayerMagnitudes& layer);

}  // namespace fp8kv
