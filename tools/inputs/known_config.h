// The config of a model that a command will compute.
#pragma once

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// Calls read_model_config. Notes unknown keys on `log`, or throws for them with `strict`.
// Refuses drafters.
ModelConfig read_known_config(const Checkpoint& checkpoint, bool strict, Log& log);

// Likewise, with read_drafter_config.
ModelConfig read_known_drafter(const Checkpoint& checkpoint, bool strict, Log& log);

}  // namespace fp8kv
