// A config.json against the tensors that lie beside it.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv {

// parse_model_config, with what only the folder can tell: the dtype, which all weights must share,
// and the end tokens of generation_config.json, which overrule those of config.json. Throws unless
// every tensor is there with its shape (of tied embeddings one name is enough; where both are
// stored the embedding counts), when there are weights or layers that the model has no use for, and
// where config.json or hf_quant_config.json says that weights are quantised.
ModelConfig read_model_config(const Checkpoint& checkpoint);

}  // namespace fp8kv
