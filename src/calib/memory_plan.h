// How a calibration divides a device's memory, decided before any is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "calib/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "model/weights/weight_stream.h"

namespace fp8kv {

struct MemoryPlan {
  int layer_buffers = 2;    // layers on the device at a time
  bool resident = true;     // the residual stream of all windows is on the device
  uint64_t bytes = 0;       // all that will be allocated on the device
  uint64_t host_bytes = 0;  // of the residual stream, where it is in host memory
};

struct MemoryBound {
  std::optional<uint64_t> bytes = {};  // on the device
  std::string name = "max_memory";     // what the caller calls it, for messages: "--max-memory"
  uint64_t beside = 0;  // taken on the device by what is computed beside the model's layers
};

// What a batch is computed with and the residual stream of all windows take, wherever they are, in
// the first `n_layers`; without weights.
uint64_t memory_beside_weights(const ModelConfig& config, const Backend& backend,
                               const WindowPlan& windows, int64_t n_layers);

// Takes the first of these that fits into `bound` (where given) and into what the device has left:
//   1. two layers and the whole residual stream on the device;
//   2. two layers on the device, the stream in host memory;
//   3. one layer on the device, the stream in host memory: reading then waits for computing.
// Throws when none fits: a usage error for the bound, which says the smallest that would do, a
// resource error for the device. On the CPU memory is the host's, nothing is planned, and a bound
// is a usage error.
MemoryPlan plan_memory(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                       const WindowPlan& windows, const std::vector<StreamedLayer>& layers,
                       const MemoryBound& bound);

}  // namespace fp8kv
