// Scale tensors put together as layers.
#pragma once

#include <vector>

#include "core/scales.h"
#include "scales/read/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// One for every layer; those without a cache stay empty. Where kv_scale stands beside k_scale and
// v_scale the two must agree: it is their maximum, bit for bit or as rounded to the coarser dtype;
// then the finer form is taken. Throws, without the folder's name, for layers that are missing or
// too many, K without V and the other way round, and forms that disagree. REQUIRES no tensor of a
// layer that is told to have no cache.
std::vector<LayerScales> scales_by_layer(const std::vector<ScaleTensor>& tensors,
                                         const StoredModel& model);

}  // namespace fp8kv
