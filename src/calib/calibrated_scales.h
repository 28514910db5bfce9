// The calibration, shared by every command that makes scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/calibration_state.h"
#include "calib/drafts/drafter_pass.h"
#include "calib/measure/input_ranges.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "data/dataset.h"
#include "policy/magnitudes.h"
#include "policy/policies.h"

namespace fp8kv {

struct CalibrationRun {
  const Windows& windows;
  ShardNote shards;
  bool until_settled = false;  // stop when amax has settled, or at the end of the text
  Policy policy;
  KvFormat format = KvFormat::e4m3fn;  // the format of the scales
  std::vector<int64_t> skipped = {};   // KvScales::skipped
  std::optional<uint64_t> max_memory;
  CalibrationState* state = nullptr;  // see CollectOptions, also for `inputs`
  InputRanges* inputs = nullptr;
  // Measures this drafter on the model, its target. REQUIRES no state, no inputs, and a policy
  // without losses.
  const Drafter* drafter = nullptr;
};

struct Calibrated {
  KvScales scales;
  std::vector<LayerMagnitudes> magnitudes;
};

// Windows of the first round of a calibration that runs until amax settles. With 8, one of thirteen
// pairs of model and text settled at 16 windows, with amax at 70 % of that of all text. See
// docs/accuracy.md.
inline constexpr size_t kFirstRound = 16;
// The most windows that such a calibration takes.
inline constexpr uint64_t kMostWindows = 512;

// Makes scales, and records in them how they were made. Reports on `log` experts that no token
// reached, and layers that saw only zeros. With a state it reports what a run that ends early
// leaves. With `until_settled` it also reports whether amax settled.
Calibrated calibrated_scales(const Checkpoint& checkpoint, const ModelConfig& config,
                             Backend& backend, const CalibrationRun& run, Log& log);

}  // namespace fp8kv
