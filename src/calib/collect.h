// Runs calibration windows through a model, one layer over all windows before the next, and
// collects the magnitudes of Q, K and V as a cache would hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/calibration_state.h"
#include "calib/collected.h"
#include "calib/input_ranges.h"
#include "calib/key_samples.h"
#include "calib/memory_plan.h"
#include "calib/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/draft_model.h"
#include "core/config.h"
#include "data/text_parts.h"
#include "model/weights/weight_stream.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// What a backend has counted in one layer: `magnitudes` as RopeAppend fills it.
// Throws when a value is NaN or infinite, naming tensor, layer and head.
LayerMagnitudes download_magnitudes(Backend& backend, const ConstTensorView& magnitudes,
                                    int64_t layer);

// The maxima alone, of finite values.
LayerAmax download_amax(Backend& backend, const ConstTensorView& magnitudes);

struct CollectOptions {
  MemoryBound max_memory = {};
  StreamOptions stream = {};          // its number of buffers is the plan's
  CalibrationState* state = nullptr;  // saved after each layer, and gone on with
  int64_t batch_rows = kBatchRows;    // see window_plan.h
  // Amax is noted after so many windows; 0: it is not. REQUIRES no more than there are, rising.
  TextParts parts = {};
  // What matrices multiply is looked at too, which takes whole layers, all of them. REQUIRES that
  // it is the backend, and no state.
  InputRanges* inputs = nullptr;
  // Samples of K are kept too. REQUIRES that it is the backend, made for these windows, and no
  // state.
  KeySamples* keys = nullptr;
  // Measured as well, behind the model's last layer, which takes whole layers, all of them.
  std::span<const DraftModel> drafts = {};
};

// Reads each weight once, in file order. Memory: two layers of weights, the residual stream of all
// windows ([tokens, dim] in the activation dtype), and scratch for one batch; what of it is on a
// device is decided by plan_memory. The result has the same bits for all options, and for one run
// or several that go on with a saved state.
// Throws as download_magnitudes, plan_memory and WeightStream do; after each layer, when a file of
// the model changed (see Checkpoint::check_unchanged).
CollectedMagnitudes collect(const Checkpoint& checkpoint, const ModelConfig& config,
                            Backend& backend, const std::vector<std::vector<int32_t>>& windows,
                            Log& log, const CollectOptions& options);
// The layers alone.
std::vector<LayerMagnitudes> collect_magnitudes(const Checkpoint& checkpoint,
                                                const ModelConfig& config, Backend& backend,
                                                const std::vector<std::vector<int32_t>>& windows,
                                                Log& log, const CollectOptions& options = {});

}  // namespace fp8kv
