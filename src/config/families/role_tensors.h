// The tensor of each role by itself, of any part of a model. Internal to config.
#pragma once

#include <cstdint>

#include "config/families/part_tensors.h"

namespace fp8kv {

// `layer` matters only if the role belongs to a layer.
RoleTensor tensor_of(TensorRole role, const ModelConfig& config, int64_t layer);

}  // namespace fp8kv
