// One calibration split over several processes: which windows each of them runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scales.h"
#include "data/dataset.h"

namespace fp8kv {

struct WindowShard {
  uint64_t index = 0;
  uint64_t of = 1;
};

// "2/8"; nullopt unless it is two whole numbers with index < of.
std::optional<WindowShard> shard_from_text(const std::string& text);

// Keeps the windows index, index + of, index + 2 of, ... and counts what is left; a document counts
// with its first window, so that the counts of all shards add up to those of the whole. What the
// whole was is in the result, which is empty for the one shard of 1.
// Throws a usage Error when no window is left. REQUIRES index < of.
ShardNote take_shard(Windows& windows, const WindowShard& shard);

}  // namespace fp8kv
