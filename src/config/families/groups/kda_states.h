// States of Kimi Delta Attention whose gates are made in two steps. Internal to config.
#pragma once

#include "config/families/tensor_blocks.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Sets the sizes of out.recurrence: by linear_attn_config of published files, or by the keys that
// transformers saves.
void parse_kda(const Json& config, ModelConfig& out);

// The tensors of such a state.   rates: the form of A_log
TensorRows kda_tensors(VectorForm rates);

}  // namespace fp8kv
