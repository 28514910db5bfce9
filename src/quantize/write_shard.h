// Writes the shards of a quantised model, tensor by tensor.
#pragma once

#include <filesystem>

#include "base/log.h"
#include "base/machine/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "quantize/schemes.h"
#include "quantize/shard_plan.h"

namespace fp8kv {

struct ShardTools {
  const Checkpoint& checkpoint;
  const Fp8Scheme& scheme;
  ThreadPool& threads;
  Progress& progress;  // counts bytes of the source
};

// Writes the shard that `plan` describes to the new file `to`. The bits do not depend on the number
// of threads. Memory: a few megabytes per thread, or 128 rows of a matrix if blocks have that many.
// Throws for an infinite or NaN weight, naming tensor and position.
void write_shard(const ShardTools& tools, const ShardPlan& plan, const std::filesystem::path& to);

}  // namespace fp8kv
