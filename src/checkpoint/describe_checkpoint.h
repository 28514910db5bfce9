// What a model folder says of its model: its config.json, held against its tensors.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model_description.h"

namespace fp8kv {

// As describe_model of the config alone. Some configs leave out that layers differ: the layers are
// unclear when a K projection is stored in a shape that contradicts them, or behind the last layer.
ModelDescription describe_model(const Checkpoint& checkpoint);

}  // namespace fp8kv
