// Reads a config.json and checks it against the tensors beside it.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// Like parse_model_config, plus facts that only the folder has. One is the dtype, which all plain
// weights share. The end tokens of generation_config.json override those of config.json. Throws
// unless every tensor exists with its shape. For tied embeddings one name is enough; if both are
// stored, they must be equal. Throws for weights or layers that the model does not use. Throws for
// weights quantised in an unsupported form, or differently from what the config files say.
ModelConfig read_model_config(const Checkpoint& checkpoint);

}  // namespace fp8kv
