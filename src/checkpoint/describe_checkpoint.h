// Describes the model of a folder from its config.json, checked against its tensors.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model/model_description.h"

namespace fp8kv {

// Like describe_model for config.json alone, but checks the stored K projections. Some configs do
// not say that layers differ. If the shape of a K projection contradicts the config, or its layer
// is behind the last, all layers become unclear.
ModelDescription describe_model(const Checkpoint& checkpoint);

}  // namespace fp8kv
