// Reads from a checkpoint what its K and V depend on; see core/model_identity.h.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/model_identity.h"

namespace fp8kv {

// Samples every tensor: its name, dtype and shape, and four blocks spread evenly over its data. The
// experts of a layer are one tensor here, with one block of each. The more tensors there are, the
// smaller the blocks: at most 1 MB is read in all, whatever the size of the model. Sharding,
// renaming and moving files change nothing. Of quantised weights it is what they are worth.
// `projections` is left empty: it costs as much again, and only scale files have it. Throws as
// Checkpoint::read does. REQUIRES the config that read_model_config gave.
ModelIdentity model_identity(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
