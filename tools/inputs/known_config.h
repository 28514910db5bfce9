// The config of a model that will be computed.
#pragma once

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv {

// read_model_config. Keys that nobody here knows are said on `log`, or with `strict` an error.
ModelConfig read_known_config(const Checkpoint& checkpoint, bool strict, Log& log);

}  // namespace fp8kv
