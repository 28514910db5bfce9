// Runs the windows of a calibration through a draft layer behind the model's last one. Its input is
// the model's last hidden state at a position and the next token, as in the first step of
// speculative decoding. The last token of a window has no next one, and is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/residual.h"
#include "calib/windows/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/drafts/draft_model.h"
#include "core/model/config.h"
#include "policy/magnitudes.h"

namespace fp8kv {

struct DraftPass {
  const Checkpoint& checkpoint;
  const ModelConfig& config;  // the model's
  Backend& backend;
  const std::vector<std::vector<int32_t>>& windows;
  const WindowPlan& plan;    // the plan of `windows`
  ResidualStream& residual;  // the output of the model's last layer
};

// The device memory of a draft layer, without its weights and without the scratch of a layer.
uint64_t draft_bytes(const ModelConfig& config, const Backend& backend, const WindowPlan& plan);

// Counts the magnitudes that the draft layer caches; nullopt if no window has two tokens.
// `progress` advances by the batches of the plan. Throws like collect.
std::optional<LayerMagnitudes> collect_draft(const DraftPass& pass, const DraftModel& draft,
                                             Progress& progress);

}  // namespace fp8kv
