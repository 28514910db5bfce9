// Scale tensors put together as layers. Internal to io.
#pragma once

#include <cstdint>
#include <vector>

#include "core/scales.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// Every layer from 0 to n_layers - 1. Where kv_scale stands beside k_scale and v_scale the two must
// agree: it is their maximum, bit for bit or as rounded to the coarser dtype; then the finer form
// is taken. Throws, without the folder's name, for layers that are missing or too many, K without V
// and the other way round, and forms that disagree.
std::vector<LayerScales> scales_by_layer(const std::vector<ScaleTensor>& tensors, int64_t n_layers);

}  // namespace fp8kv
