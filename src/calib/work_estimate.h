// How long a calibration will take, from the arithmetic that the model asks for and the speed that
// this machine was seen to do some of it at.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "core/config.h"

namespace fp8kv {

// Multiplications, each with its addition, of all products and of attention that `windows` take in
// the layers up to the last cache, of which that goes no further than its K and V. What makes up
// the rest of a layer is not counted.
double multiply_adds(const ModelConfig& config, const std::vector<std::vector<int32_t>>& windows);

// How many of them the backend does in a second, in a product as wide as the model of a few hundred
// rows. Takes some hundredths of a second, a few tenths on a machine that is slow.
double measured_speed(Backend& backend, const ModelConfig& config);

}  // namespace fp8kv
