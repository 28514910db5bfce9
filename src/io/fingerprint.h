// A digest that tells whether scales were made from these K and V projections.
#pragma once

#include <string>

#include "core/config.h"
#include "io/checkpoint.h"

namespace fp8kv {

// "kv-proj-v1:<sha256>". Over every layer's K and V weight and bias in order: name, dtype, shape,
// and up to four blocks of 1,024 bytes spread evenly over the data, so that a 140 GB model costs
// milliseconds. A fine-tune changes it; moving, sharding or renaming files does not.
std::string model_fingerprint(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
