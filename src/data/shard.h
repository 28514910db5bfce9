// Splits one calibration over several processes: which windows each of them runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scales/scales.h"
#include "data/dataset.h"

namespace fp8kv {

struct WindowShard {
  uint64_t index = 0;
  uint64_t of = 1;
};

// Parses "2/8"; nullopt unless it is two whole numbers with index < of.
std::optional<WindowShard> shard_from_text(const std::string& text);

// Keeps the windows index, index + of, index + 2 of, ... and counts them again. A document counts
// in the shard of its first window, so the counts of all shards add up to those of the whole. The
// result notes the counts of the whole; it is empty for the only shard of 1. Throws a usage Error
// if no window is left. REQUIRES index < of.
ShardNote take_shard(Windows& windows, const WindowShard& shard);

}  // namespace fp8kv
