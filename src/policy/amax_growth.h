// The growth of a model's largest magnitudes as more text is counted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/scales/scales.h"

namespace fp8kv {

// The growth of K or V in the layer where amax grew most.
struct AmaxGrowth {
  size_t layer = 0;
  bool key = true;   // K, or V
  double share = 0;  // per doubling of the text: 0.35 is 35 %; infinity from 0

  // The growth in octaves: the change of a scale.
  double octaves() const;
  // "layer 3 K"
  std::string where() const;
};

// The growth per doubling of the text, as in AmaxGrowth::share; 0 if a layer has no cache.
struct LayerGrowth {
  double k = 0;
  double v = 0;
};

// The amax whose growth counts: the largest of a layer's heads, or each head's own.
enum class GrowthOf { layer, head };

// Returns the growth from `before` to `after`; the text of `after` contains that of `before`.
// It is 0 if both have equally many tokens. REQUIRES the same layers, and 0 < before.tokens <=
// after.tokens.
AmaxGrowth amax_growth(const AmaxAfter& before, const AmaxAfter& after, GrowthOf of);
// The growth of every layer. Same requirements as amax_growth.
std::vector<LayerGrowth> layer_growth(const AmaxAfter& before, const AmaxAfter& after, GrowthOf of);

}  // namespace fp8kv
