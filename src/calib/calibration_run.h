// Records a calibration in its scales, for every command that makes some.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "data/dataset.h"

namespace fp8kv {

// The identity that `calibrate` records: config, sampled rows of every matrix, and projections.
ModelIdentity whole_identity(const Checkpoint& checkpoint, const ModelConfig& config);

struct CountedWindows {
  const Windows& windows;
  AmaxParts parts;  // from collect()
  ShardNote shards;
};

// Records in `scales` that `calibrate` made them from these windows. REQUIRES the model's identity.
void add_calibration(const ModelConfig& config, const ModelIdentity& identity,
                     CountedWindows counted, KvScales& scales);

}  // namespace fp8kv
