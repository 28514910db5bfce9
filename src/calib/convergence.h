// How what a text reaches settles while more of it is counted.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "policy/magnitudes.h"

namespace fp8kv {

struct Convergence {
  std::vector<LayerMagnitudes> magnitudes;  // of all that was counted
  std::vector<AmaxAfter> parts;             // the last is of all
};

// What collect_magnitudes finds in the first `counts[i]` windows, for each i; counts that do not
// rise are passed over. Every window is run once, and the weights are read once for each count.
// REQUIRES a count that is not 0.
Convergence collect_in_parts(const Checkpoint& checkpoint, const ModelConfig& config,
                             Backend& backend, const std::vector<std::vector<int32_t>>& windows,
                             const std::vector<size_t>& counts, Log& log);

}  // namespace fp8kv
