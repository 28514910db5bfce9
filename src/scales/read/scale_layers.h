// Assembles scale tensors into layers.
#pragma once

#include <vector>

#include "core/scales/scales.h"
#include "scales/read/stores/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// Returns one entry for every layer; those without a cache stay empty. If kv_scale stands beside
// k_scale and v_scale, it must be their maximum, bit for bit or rounded to the coarser dtype. The
// separate scales are then used. Throws for missing or extra layers, for K without V or V without
// K, and for forms that disagree. Messages do not name the folder. REQUIRES no tensor of a layer
// that is known to have no cache.
std::vector<LayerScales> scales_by_layer(const std::vector<ScaleTensor>& tensors,
                                         const StoredModel& model);

}  // namespace fp8kv
