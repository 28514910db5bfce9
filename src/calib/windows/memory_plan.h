// Decides how a calibration divides a device's memory, before it allocates any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "calib/windows/model_on_backend.h"
#include "calib/windows/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "model/weights/weight_stream.h"

namespace fp8kv {

struct MemoryPlan {
  int layer_buffers = 2;    // layers on the device at a time
  bool resident = true;     // the residual stream of all windows is on the device
  uint64_t bytes = 0;       // everything that will be allocated on the device
  uint64_t host_bytes = 0;  // the residual stream, if it is in host memory
};

struct MemoryBound {
  std::optional<uint64_t> bytes = {};  // on the device
  std::string name = "max_memory";     // the caller's name for messages: "--max-memory"
  uint64_t beside = 0;                 // device memory of computations beside the model's layers
};

// The memory of the first `n_layers` without weights: scratch for one batch, and the residual
// stream of all windows, on host or device.
uint64_t memory_beside_weights(const ModelConfig& config, const Backend& backend,
                               const WindowPlan& windows, int64_t n_layers);

// Returns the first of these plans that fits both `bound` (if given) and the device's free memory:
//   1. two layers and the whole residual stream on the device;
//   2. two layers on the device, the stream in host memory;
//   3. one layer on the device, the stream in host memory: reading then waits for computing.
// If none fits, throws: a usage error for the bound, with the smallest one that works, or a
// resource error for the device. On the CPU there is nothing to plan, and a bound is a usage error.
MemoryPlan plan_memory(const ModelOnBackend& model, const WindowPlan& windows,
                       const std::vector<StreamedLayer>& layers, const MemoryBound& bound);

}  // namespace fp8kv
