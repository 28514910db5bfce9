// Reads the weights that a model's K and V depend on; see core/model/model_identity.h.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/model/model_identity.h"

namespace fp8kv {

// Samples every tensor: its name, dtype and shape, and four blocks spread evenly over its data. The
// experts of a layer count as one tensor, with one block of each expert. The more tensors there
// are, the smaller the blocks: at most 1 MB is read for any model. Sharding, renaming and moving
// files change nothing. Quantised weights are sampled as decoded. `projections` stays empty, since
// it costs as much again and only scale files use it. Throws like Checkpoint::read. REQUIRES the
// config from read_model_config.
ModelIdentity model_identity(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
