// Models whose layers differ from Llama's: one for each knob of BlockConfig, and the combinations
// of real families. The knobs are set in the config's value, because no config.json has them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

struct BlockVariant {
  std::string name;
  std::function<void(TinyConfig&)> change;
};

// Each variant differs from a plain Llama.
const std::vector<BlockVariant>& block_variants();

// A folder with such a model.
struct BlockModel {
  BlockModel(const BlockVariant& variant, DType dtype, int64_t head_dim);

  TempDir folder;
  TinyConfig tiny;
  ModelConfig config;
  Checkpoint checkpoint;
};

}  // namespace fp8kv::test
