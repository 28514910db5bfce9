// Calibrates on as many windows as needed: each round doubles the text, until the largest
// magnitudes settle. The collected bits do not depend on the rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "policy/amax_growth.h"

namespace fp8kv {

// Amax has settled if the last doubling of the text raised it by no more than this.
inline constexpr double kSettledGrowth = 0.05;

struct RoundOptions {
  CollectOptions collect = {};  // `parts` is ignored: each round makes its own
  // Windows of the first round. Each later round runs as many as all before it. 0: all in one
  // round.
  size_t first_round = 0;
  GrowthOf growth = GrowthOf::layer;  // the amax that has to settle
};

struct Rounds {
  CollectedMagnitudes collected;
  size_t windows = 0;  // the number of windows that ran, from the first
  // The growth over the last doubling; absent after a single round.
  std::optional<AmaxGrowth> growth;
};

// Logs the growth of amax after each doubling. With a state, resumes in the round of that state.
// Throws as collect does.
Rounds collect_in_rounds(const ModelOnBackend& model,
                         const std::vector<std::vector<int32_t>>& windows, Log& log,
                         const RoundOptions& options);

}  // namespace fp8kv
