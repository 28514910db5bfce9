// What a calibration has collected of a model's layers. Plain values that add up.
#pragma once

#include <cstdint>
#include <vector>

#include "core/scales.h"
#include "policy/magnitudes.h"

namespace fp8kv {

struct CollectedMagnitudes {
  std::vector<LayerMagnitudes> layers;
  AmaxParts parts;  // those that were asked for
  // [n_layers][experts]: tokens that were sent to each; empty for a model without experts.
  std::vector<std::vector<uint64_t>> reached;
  // One entry a draft layer of CollectOptions. An entry has no heads if no window had two tokens.
  std::vector<LayerMagnitudes> drafts;
};

// What both have collected together, of other windows each; a `sum` without layers becomes the same
// as `other`. REQUIRES the same layers, heads and experts.
void add_up(CollectedMagnitudes& sum, const CollectedMagnitudes& other);

}  // namespace fp8kv
