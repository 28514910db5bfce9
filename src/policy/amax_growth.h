// How the largest magnitudes of a model grow while more text is counted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/scales.h"

namespace fp8kv {

// Of K or V of the layer where amax grew most.
struct AmaxGrowth {
  size_t layer = 0;
  bool key = true;   // K, or V
  double share = 0;  // by each doubling of the text: 0.35 is 35 %; infinity from 0

  // The same in octaves: what a scale moves by.
  double octaves() const;
  // "layer 3 K"
  std::string where() const;
};

// By each doubling of the text, as AmaxGrowth::share; 0 where a layer has no cache.
struct LayerGrowth {
  double k = 0;
  double v = 0;
};

// What grows: the largest of a layer's heads, or each head on its own.
enum class GrowthOf { layer, head };

// From `before` to `after`, whose text holds the other's. REQUIRES the same layers, and that
// `before` has tokens but not more than `after`; with as many, nothing grew.
AmaxGrowth amax_growth(const AmaxAfter& before, const AmaxAfter& after, GrowthOf of);
// The growth of every layer, with the same requirements.
std::vector<LayerGrowth> layer_growth(const AmaxAfter& before, const AmaxAfter& after, GrowthOf of);

}  // namespace fp8kv
