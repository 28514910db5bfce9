// Runs calibration windows through a model, one layer over all windows before the next, and
// collects the magnitudes of Q, K and V as a cache would hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/calibration_state.h"
#include "calib/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/histogram.h"
#include "core/scales.h"
#include "model/weight_stream.h"

namespace fp8kv {

// Statistics of one head, or of several added up.
struct MagnitudeCounts {
  float amax = 0;
  uint64_t nonfinite = 0;
  std::vector<uint64_t> bins;  // kMagnitudeBins

  void add(const MagnitudeCounts& other);
};

// [n_kv_heads] each. Q of a KV head is that of all query heads that read it.
struct LayerMagnitudes {
  std::vector<MagnitudeCounts> q, k, v;

  void add(const LayerMagnitudes& other);
};

LayerAmax layer_amax(const LayerMagnitudes& layer);

// What a backend has counted in one layer: `magnitudes` as RopeAppend fills it.
// Throws when a value is NaN or infinite, naming tensor, layer and head.
LayerMagnitudes download_magnitudes(Backend& backend, const ConstTensorView& magnitudes,
                                    int64_t layer);

struct CollectOptions {
  std::optional<uint64_t> max_memory = {};  // bytes on the device; see memory_plan.h
  StreamOptions stream = {};                // its number of buffers is the plan's
  CalibrationState* state = nullptr;        // saved after each layer, and gone on with
  int64_t batch_rows = kBatchRows;          // see window_plan.h
};

// Each weight is read once and in file order, so memory is bounded by two layers plus the residual
// stream of the whole set ([tokens, dim] in the activation dtype) and one batch of scratch; on a
// device see plan_memory. The result is the same bits whatever the options, and whether it was
// reached in one run or several.
// Throws as download_magnitudes, plan_memory and WeightStream do.
std::vector<LayerMagnitudes> collect_magnitudes(const Checkpoint& checkpoint,
                                                const ModelConfig& config, Backend& backend,
                                                const std::vector<std::vector<int32_t>>& windows,
                                                Log& log, const CollectOptions& options = {});

}  // namespace fp8kv
