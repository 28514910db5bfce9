// Estimates how long a calibration takes, from the arithmetic of the model and a measured speed of
// this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "core/model/config.h"

namespace fp8kv {

// The multiply-adds of all products and of attention for `windows`. Counts the layers up to the
// last one with a cache, and of that one only K and V. Element-wise work is not counted.
double multiply_adds(const ModelConfig& config, const std::vector<std::vector<int32_t>>& windows);

// The multiply-adds per second of the backend, measured on a product of a few hundred rows, as wide
// as the model. Takes a few hundredths of a second, or tenths on a slow machine.
double measured_speed(Backend& backend, const ModelConfig& config);

}  // namespace fp8kv
