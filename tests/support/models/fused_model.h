// A model with fused tensors like Phi-3: one for Q, K and V, one for gate and up.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "support/models/block_model.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// Has the same numbers as `model`, which keeps the tensors apart.
struct FusedModel {
  explicit FusedModel(const BlockModel& model);

  TempDir folder;
  ModelConfig config;
  Checkpoint checkpoint;
};

}  // namespace fp8kv::test
