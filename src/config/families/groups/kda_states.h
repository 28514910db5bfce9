// States of Kimi Delta Attention whose steps are made by two products. Internal to config.
#pragma once

#include "config/families/tensor_blocks.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Sets the sizes of out.recurrence: by linear_attn_config of published files, or by the keys that
// transformers saves.
void parse_kda(const Json& config, ModelConfig& out);

// Throws if the gate is made by one product, where it must be made by two.
void refuse_full_gate(const Json& config);

// The tensors of such a state.   rates: the form of A_log
TensorRows kda_tensors(VectorForm rates);
TensorRows ungated_kda_tensors(VectorForm rates);  // without those of the gate

}  // namespace fp8kv
