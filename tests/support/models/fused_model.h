// A model whose Q, K and V are one tensor, and whose gate and up are another, as Phi-3 has them.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "support/models/block_model.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// The same numbers as in `model`, which has a tensor for each.
struct FusedModel {
  explicit FusedModel(const BlockModel& model);

  TempDir folder;
  ModelConfig config;
  Checkpoint checkpoint;
};

}  // namespace fp8kv::test
