// Calibrates on as many windows as are needed: in rounds, each of which doubles the text, until the
// largest magnitudes have settled. Whatever the rounds, what is collected has the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "policy/amax_growth.h"

namespace fp8kv {

// Amax has settled where it grew by no more than this when the text last doubled.
inline constexpr double kSettledGrowth = 0.05;

struct RoundOptions {
  CollectOptions collect = {};  // its parts are those of the windows
  // Windows of the first round; each round after it runs as many as all before. 0: all at once.
  size_t first_round = 0;
  GrowthOf growth = GrowthOf::layer;  // what has to settle
};

struct Rounds {
  CollectedMagnitudes collected;
  size_t windows = 0;  // so many of the first were run
  // Over the last doubling; absent where there was but one round.
  std::optional<AmaxGrowth> growth;
};

// Says on `log` after each doubling how much it brought. With a state, goes on in the round that it
// is of. Throws as collect does.
Rounds collect_in_rounds(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         const std::vector<std::vector<int32_t>>& windows, Log& log,
                         const RoundOptions& options);

}  // namespace fp8kv
