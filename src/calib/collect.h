// Runs calibration windows through a model, and collects the magnitudes of Q, K and V as a cache
// would hold them. Each layer runs over all windows before the next one starts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/calibration_state.h"
#include "calib/drafts/drafter_pass.h"
#include "calib/measure/collected.h"
#include "calib/measure/input_ranges.h"
#include "calib/measure/key_samples.h"
#include "calib/windows/memory_plan.h"
#include "calib/windows/model_on_backend.h"
#include "calib/windows/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/drafts/draft_model.h"
#include "core/model/config.h"
#include "data/text_parts.h"
#include "model/weights/weight_stream.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// Returns the magnitudes of one layer. `magnitudes` as RopeAppend fills it.
// Throws for a NaN or infinite value, naming tensor, layer and head.
LayerMagnitudes download_magnitudes(Backend& backend, const ConstTensorView& magnitudes,
                                    int64_t layer);

// Returns the maxima alone. REQUIRES finite values.
LayerAmax download_amax(Backend& backend, const ConstTensorView& magnitudes);

struct CollectOptions {
  MemoryBound max_memory = {};
  StreamOptions stream = {};          // the memory plan sets its number of buffers
  CalibrationState* state = nullptr;  // saved after each layer; collection resumes from it
  int64_t batch_rows = kBatchRows;    // see window_plan.h
  // The numbers of windows after which amax is noted; 0: never. REQUIRES ascending numbers, at most
  // the number of windows.
  TextParts parts = {};
  // Also records the inputs of matrix products, which makes every layer run as a whole. REQUIRES
  // that this object is the backend, and no state.
  InputRanges* inputs = nullptr;
  // Also keeps samples of K. REQUIRES that this object is the backend, made for these windows, and
  // no state.
  KeySamples* keys = nullptr;
  // Also measures losses at each mantissa of a scale, which makes every layer run as a whole. Draft
  // layers have none. Throws as check_losses_measurable does (calib/measure/scale_losses.h).
  bool losses = false;
  // Also measures these draft layers behind the last one, which makes every layer run as a whole.
  std::span<const DraftModel> drafts = {};
  // Measures this drafter in place of the model, which is its target: the result has one layer, the
  // drafter's. The model runs up to the last layer whose input the drafter reads. REQUIRES none of
  // the options above but `max_memory`, `stream`, `batch_rows` and `parts`.
  const Drafter* drafter = nullptr;
};

// Reads each weight once, in file order. Memory: two layers of weights, the residual stream of all
// windows ([tokens, dim] in the activation dtype), and scratch for one batch. plan_memory decides
// which of these are on a device. The result has the same bits for all options, with or without a
// resumed state.
// Throws as download_magnitudes, plan_memory and WeightStream do. Throws after a layer if a file of
// the model changed (see Checkpoint::check_unchanged).
CollectedMagnitudes collect(const ModelOnBackend& model,
                            const std::vector<std::vector<int32_t>>& windows, Log& log,
                            const CollectOptions& options);
// Returns the layers alone.
std::vector<LayerMagnitudes> collect_magnitudes(const ModelOnBackend& model,
                                                const std::vector<std::vector<int32_t>>& windows,
                                                Log& log, const CollectOptions& options = {});

}  // namespace fp8kv
