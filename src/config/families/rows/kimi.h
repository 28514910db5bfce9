// Kimi Linear and Kimi K3 share these keys of config.json and these tensors. Internal to the rows
// of both.
#pragma once

#include "config/families/tensor_blocks.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Throws unless both keys name the same layers that keep a state. Transformers goes by layer_types,
// and vLLM by linear_attn_config.
void check_kimi_lists(const Json& config, const ModelConfig& out);

void parse_kimi_experts(const Json& config, ModelConfig& out);

// Transformers saves a dense part under the name of experts.
TensorRows kimi_dense_or_experts();

}  // namespace fp8kv
