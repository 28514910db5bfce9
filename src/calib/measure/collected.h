// The magnitudes that a calibration collected in a model's layers. Plain values that add up.
#pragma once

#include <cstdint>
#include <vector>

#include "core/scales/scales.h"
#include "policy/magnitudes.h"

namespace fp8kv {

struct CollectedMagnitudes {
  std::vector<LayerMagnitudes> layers;
  AmaxParts parts;  // the parts that CollectOptions asked for
  // [n_layers][experts]: tokens routed to each expert; empty for a model without experts.
  std::vector<std::vector<uint64_t>> reached;
  // One entry for each draft layer in CollectOptions. It has no heads if no window had two tokens.
  std::vector<LayerMagnitudes> drafts;
};

// Adds the magnitudes of other windows to `sum`. A `sum` without layers becomes a copy of `other`.
// REQUIRES the same layers, heads and experts.
void add_up(CollectedMagnitudes& sum, const CollectedMagnitudes& other);

}  // namespace fp8kv
