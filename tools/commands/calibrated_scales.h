// The calibration itself, for commands that make scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/calibration_state.h"
#include "calib/input_ranges.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/scales.h"
#include "data/dataset.h"
#include "policy/magnitudes.h"
#include "policy/policies.h"

namespace fp8kv {

struct CalibrationRun {
  const Windows& windows;
  ShardNote shards;
  bool until_settled = false;  // as many of the windows as that takes, or all
  Policy policy;
  KvFormat format = KvFormat::e4m3fn;  // what the scales are made for
  std::vector<int64_t> skipped = {};   // KvScales::skipped
  std::optional<uint64_t> max_memory;
  CalibrationState* state = nullptr;  // this and the next: see CollectOptions
  InputRanges* inputs = nullptr;
};

struct Calibrated {
  KvScales scales;
  std::vector<LayerMagnitudes> magnitudes;
};

// Windows of the first round of a calibration that goes on until amax has settled. With 8 one of
// thirteen pairs of model and text settled at 16, where amax was 70 % of that of all text:
// docs/accuracy.md.
inline constexpr size_t kFirstRound = 16;
// Windows that it takes at most.
inline constexpr uint64_t kMostWindows = 512;

// Scales with all that is to be known of how they were made. Says on `log` which experts no token
// came to, and which layers saw nothing but zeros; with a state, what a run that ends early has
// left; whether amax settled, where that was asked for.
Calibrated calibrated_scales(const Checkpoint& checkpoint, const ModelConfig& config,
                             Backend& backend, const CalibrationRun& run, Log& log);

}  // namespace fp8kv
