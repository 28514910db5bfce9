// Dense HunYuan models and those with experts share attention and its keys of config.json. Internal
// to the rows of these families.
#pragma once

#include "config/families/tensor_blocks.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

void parse_hunyuan_attention(const Json& config, ModelConfig& out);

// The norms of Q and K.
TensorRows hunyuan_norms();

}  // namespace fp8kv
